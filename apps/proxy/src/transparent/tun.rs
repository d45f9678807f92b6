//! The device through which the system hands packets to this program and takes them back.

use super::packet::ROOM;
use crate::config::shown;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl;
use std::fs::File;
use std::io::{self, Read, Write};

/// What the system is asked for: `struct ifreq` of linux/if.h, as TUNSETIFF reads it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// `TUNSETIFF`, `IFF_TUN` and `IFF_NO_PI` of linux/if_tun.h.
const SET: ioctl::Opcode = ioctl::opcode::write::<i32>(b'T', 202);
const TUN: u16 = 0x0001;
const NO_PI: u16 = 0x1000;

/// A packet at most.
const PACKET_MAX: usize = 64 << 10;

/// A device of packets of IP.
#[derive(Debug)]
pub struct Tun {
    file: File,
    scratch: Box<[u8]>,
}

impl Tun {
    /// Takes a device that is there.
    ///
    /// # Errors
    /// In words, with the way out.
    pub fn open(name: &str) -> Result<Tun, String> {
        let made = format!("make it with: ip tuntap add dev {name} mode tun && ip link set {name} up");
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        if !(1..16).contains(&name.len()) || !name.bytes().all(plain) || name.starts_with('.') {
            return Err(format!("{:?} is no name of a device; give one of 1 to 15 letters and digits", shown(name)));
        }
        if !std::path::Path::new("/sys/class/net").join(name).join("tun_flags").exists() {
            return Err(format!("there is no device {name} for packets; {made}"));
        }
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::ResourceBusy => {
                format!("another program has the device {name}; end that, or make another one")
            }
            _ => format!("cannot take the device {name}: {e}; {made}"),
        };
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        let mut request = Request { name: [0; 16], flags: TUN | NO_PI, rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        // SAFETY: TUNSETIFF reads a `struct ifreq`, 40 bytes on every 64-bit Linux, of which `Request` is the layout, and writes it back.
        let set = unsafe { ioctl::Updater::<SET, Request>::new(&mut request) };
        // SAFETY: the opcode is TUNSETIFF, the descriptor is that of /dev/net/tun, and the kernel keeps nothing of the structure, of whose bytes
        // any are one.
        unsafe { ioctl::ioctl(&file, set) }.map_err(|e| failed(e.into()))?;
        Ok(Tun { file: file.into(), scratch: vec![0; ROOM + PACKET_MAX].into_boxed_slice() })
    }

    /// The descriptor, to be waited for.
    pub fn descriptor(&self) -> &File {
        &self.file
    }

    /// The next packet, behind [`ROOM`] bytes; nothing if there is none now.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let count = (&self.file).read(&mut self.scratch[ROOM..]).ok()?;
        Some(self.scratch[..ROOM + count].to_vec())
    }

    /// Gives a packet back; one for which there is no room is lost, as on any network.
    pub fn give(&self, packet: &[u8]) {
        let _ = (&self.file).write(packet);
    }
}
