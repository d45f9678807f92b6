//! A network that loses and reorders, between two ends that speak RTSP with datagrams: text passes with other ports in it, datagrams
//! from the server towards the client pass as a seed says. What happens to a packet depends on its number only, not on time.

use crate::support::{Heard, hear};
use multigrain_proxy::net::datagrams;
use std::collections::HashSet;
use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the network does.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) seed: u64,
    /// Packets of a thousand that are lost.
    pub(crate) lost: u64,
    /// Packets of a thousand that come up to four packets later.
    pub(crate) late: u64,
}

/// What it did.
#[derive(Default)]
pub(crate) struct Done {
    /// Timestamps of which a packet was lost.
    pub(crate) lost: HashSet<u32>,
    pub(crate) packets: u64,
    pub(crate) packets_lost: u64,
    pub(crate) packets_late: u64,
}

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) done: Arc<Mutex<Done>>,
    ends: Arc<AtomicBool>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// A number of a packet's own (SplitMix64's end).
fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Relay {
    /// Before a server; loses nothing until `rains` is set.
    pub(crate) fn new(server: SocketAddr, weather: Weather, rains: Arc<AtomicBool>) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (done, ends) = (Arc::new(Mutex::new(Done::default())), Arc::new(AtomicBool::new(false)));
        let (to, over) = (done.clone(), ends.clone());
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let link = Link { weather, rains: rains.clone(), done: to.clone(), ends: over.clone() };
                std::thread::spawn(move || link.talk(&client, &server));
            }
        });
        Relay { address, done, ends }
    }
}

#[derive(Clone)]
struct Link {
    weather: Weather,
    rains: Arc<AtomicBool>,
    done: Arc<Mutex<Done>>,
    ends: Arc<AtomicBool>,
}

/// Where datagrams of one track go: the client's first port, the server's.
type Ends = Arc<Mutex<(u16, u16)>>;

impl Link {
    fn talk(self, client: &TcpStream, server: &TcpStream) {
        let asked: Arc<Mutex<Vec<(u16, Ends)>>> = Arc::default();
        let answers = {
            let (server, mut client, asked) = (server.try_clone().unwrap(), client.try_clone().unwrap(), asked.clone());
            std::thread::spawn(move || {
                let mut reader = BufReader::new(server);
                loop {
                    let (text, body) = match hear(&mut reader) {
                        Heard::Text(text, body) => (text, body),
                        Heard::Frame(channel, bytes) => {
                            let length = (bytes.len() as u16).to_be_bytes();
                            let frame = [&[b'$', channel], length.as_slice(), &bytes].concat();
                            if client.write_all(&frame).is_err() {
                                return;
                            }
                            continue;
                        }
                        Heard::End => return drop(client.shutdown(std::net::Shutdown::Both)),
                    };
                    let mut told = text.clone();
                    for (own, ends) in asked.lock().unwrap().iter() {
                        if port(&text, "client_port=") == Some(*own) {
                            let mut ends = ends.lock().unwrap();
                            ends.1 = port(&text, "server_port=").unwrap_or(0);
                            told = with_port(&told, "client_port=", ends.0);
                            told = with_port(&told, "server_port=", *own);
                        }
                    }
                    if client.write_all(&[told.as_bytes(), &body].concat()).is_err() {
                        return;
                    }
                }
            })
        };
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut writer = server;
        loop {
            let bytes = match hear(&mut reader) {
                Heard::Text(mut text, body) => {
                    if let Some(theirs) = port(&text, "client_port=") {
                        let ends: Ends = Arc::new(Mutex::new((theirs, 0)));
                        let own = self.clone().pair(&ends);
                        asked.lock().unwrap().push((own, ends));
                        text = with_port(&text, "client_port=", own);
                    }
                    [text.as_bytes(), &body].concat()
                }
                Heard::Frame(channel, bytes) => {
                    let length = (bytes.len() as u16).to_be_bytes();
                    [&[b'$', channel], length.as_slice(), &bytes].concat()
                }
                Heard::End => break,
            };
            if writer.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = server.shutdown(std::net::Shutdown::Both);
        let _ = answers.join();
    }

    /// Two sockets, of which the first is for packets.
    fn pair(self, ends: &Ends) -> u16 {
        // With room for what comes while this computer does something else.
        let (first, second) = datagrams(Ipv4Addr::LOCALHOST.into(), 0).unwrap();
        let port = first.local_addr().unwrap().port();
        for (socket, step) in [(first, 0), (second, 1)] {
            socket.set_nonblocking(false).unwrap();
            let (link, ends) = (self.clone(), ends.clone());
            std::thread::spawn(move || link.carry(&socket, &ends, step));
        }
        port
    }

    fn carry(self, socket: &UdpSocket, ends: &Ends, step: u16) {
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let (mut bytes, mut number) = (vec![0; 1 << 16], 0);
        // Packets, and after how many others they come.
        let mut held: Vec<(u64, Vec<u8>)> = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
            let (client, server) = *ends.lock().unwrap();
            let pass = |packet: &[u8], port: u16| drop(socket.send_to(packet, ("127.0.0.1", port)));
            // A server whose ports are not known yet has just been asked.
            if from.port() == client + step {
                pass(&bytes[..length], server + step);
                continue;
            }
            let packet = &bytes[..length];
            if step == 1 {
                pass(packet, client + step);
                continue;
            }
            number += 1;
            let fate = if self.rains.load(Ordering::Relaxed) { mixed(self.weather.seed, number) } else { u64::MAX };
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.packets += 1;
            if fate % 1000 < self.weather.lost {
                done.packets_lost += 1;
                done.lost.insert(u32::from_be_bytes(packet[4..8].try_into().unwrap()));
            } else if fate % 1000 < self.weather.lost + self.weather.late {
                done.packets_late += 1;
                held.push((number + 1 + (fate >> 32) % 4, packet.to_vec()));
            } else {
                pass(packet, client);
            }
            held.retain(|(until, packet)| {
                if *until <= number {
                    pass(packet, client);
                }
                *until > number
            });
        }
    }
}

/// The first of two ports that a text tells.
fn port(text: &str, name: &str) -> Option<u16> {
    text.split(name).nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn with_port(text: &str, name: &str, port: u16) -> String {
    let Some((before, rest)) = text.split_once(name) else { return text.to_owned() };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    format!("{before}{name}{port}-{}{after}", port + 1)
}
