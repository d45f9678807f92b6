"""A relay of gst-rtsp-server: pulls an address by RTSP and serves its packets as they are to any number of viewers.

python3 relay.py ADDRESS PORT    with PyGObject and the typelib of GstRtspServer; prints a line when it serves rtsp://127.0.0.1:PORT/front
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(sys.argv[2])
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(f"( rtspsrc location={sys.argv[1]} latency=0 protocols=udp ! identity name=pay0 )")
factory.set_shared(True)
server.get_mount_points().add_factory("/front", factory)
server.attach(None)
print("serving", flush=True)
GLib.MainLoop().run()
