//! Messages of RTSP 1.0 (RFC 2326) and HTTP/1 (RFC 9112): text heads, bodies of a told length, and frames of
//! interleaved data between them.
//!
//! Both have the same headers, which the crate `httparse` reads. Everything is bounded, a message that is not complete yet is
//! told from one that never will be, and what could be read in two ways is refused.

use std::fmt::Write as _;
use std::ops::Range;
use thiserror::Error;

/// Headers of a message at most.
const HEADERS_MAX: usize = 64;

/// How large messages may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of the first line and the headers.
    pub head_bytes: usize,
    /// Bytes of what follows.
    pub body_bytes: usize,
}

/// Names and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of that name; case does not count.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All values of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Which protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RTSP/1.0
    Rtsp,
    /// HTTP/1.0 or HTTP/1.1
    Http,
}

/// What comes first in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Somebody asks.
    Request {
        /// Which language.
        protocol: Protocol,
        /// In capital letters.
        method: String,
        /// As it was written.
        target: String,
        /// Names and values.
        headers: Headers,
        /// Empty if there is none.
        body: Vec<u8>,
    },
    /// Somebody answers.
    Response {
        /// 200 is well.
        status: u16,
        /// Names and values.
        headers: Headers,
        /// Empty if there is none.
        body: Vec<u8>,
    },
    /// Data of a channel (RFC 2326, section 10.12).
    Data {
        /// The number in the frame.
        channel: u8,
        /// Where in the buffer the data is.
        range: Range<usize>,
    },
}

/// A message that never will be one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The head has no end.
    #[error("its head is longer than {0} bytes")]
    Head(usize),
    /// The body is too long.
    #[error("it announces {0} bytes of content, and at most {1} are taken")]
    Body(usize, usize),
    /// It is no message of these protocols.
    #[error("{0}")]
    Text(&'static str),
}

/// The end of a head, behind its empty line.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|b| *b == b'\n') {
        let next = from + at + 1;
        match bytes[next..] {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => from = next,
        }
    }
    None
}

/// Takes one message from the beginning of a buffer: what it is and how many bytes it took, or nothing while it is not
/// complete.
///
/// # Errors
/// It will never be a message, or is larger than allowed.
pub fn take(buffer: &[u8], bounds: Bounds) -> Result<Option<(Message, usize)>, Malformed> {
    // Some cameras send empty lines between messages.
    let skipped = buffer.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let bytes = &buffer[skipped..];
    let Some(&first) = bytes.first() else {
        return if skipped > bounds.head_bytes { Err(Malformed::Head(bounds.head_bytes)) } else { Ok(None) };
    };
    if first == b'$' {
        let &[_, channel, high, low, ..] = bytes else { return Ok(None) };
        let start = skipped + 4;
        let range = start..start + usize::from(u16::from_be_bytes([high, low]));
        return Ok((buffer.len() >= range.end).then(|| {
            let end = range.end;
            (Message::Data { channel, range }, end)
        }));
    }
    if !first.is_ascii_alphabetic() {
        return Err(Malformed::Text("it begins with neither a method nor a version"));
    }
    let Some(end) = head_end(&bytes[..bytes.len().min(bounds.head_bytes)]) else {
        return if bytes.len() >= bounds.head_bytes { Err(Malformed::Head(bounds.head_bytes)) } else { Ok(None) };
    };
    let line_end = bytes.iter().position(|b| *b == b'\n').unwrap_or(0);
    let line = std::str::from_utf8(&bytes[..line_end]).map_err(|_| Malformed::Text("its first line is no text"))?;
    let line = line.trim_end_matches('\r');
    if line.bytes().any(|b| b.is_ascii_control()) {
        return Err(Malformed::Text("its first line has control characters in it"));
    }
    let mut slots = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let parsed = httparse::parse_headers(&bytes[line_end + 1..end], &mut slots);
    let Ok(httparse::Status::Complete((_, found))) = parsed else {
        return Err(Malformed::Text("its headers are malformed, or more than 64"));
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    let headers = Headers(found.iter().map(|h| (h.name.to_owned(), text(h.value))).collect());
    let lengths: Vec<&str> = headers.all("content-length").collect();
    // The content of a tunnel's way back has no end, whatever it tells, and nothing else comes on that connection.
    let is_tunnel = line.starts_with("POST ") && headers.get("x-sessioncookie").is_some();
    let length = match lengths.first() {
        _ if is_tunnel => 0,
        None => 0,
        Some(told) if !told.is_empty() && told.bytes().all(|b| b.is_ascii_digit()) => {
            told.parse::<usize>().map_err(|_| Malformed::Text("its content length is too large"))?
        }
        Some(_) => return Err(Malformed::Text("its content length is no number")),
    };
    if lengths.len() > 1 || headers.get("transfer-encoding").is_some() {
        return Err(Malformed::Text("it tells its length in more than one way, or in chunks"));
    }
    if headers.all("host").count() > 1 {
        return Err(Malformed::Text("it names more than one host"));
    }
    if length > bounds.body_bytes {
        return Err(Malformed::Body(length, bounds.body_bytes));
    }
    let all = end + length;
    let complete = bytes.get(end..all).map(<[u8]>::to_vec);
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let (one, two, three) = (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next());
    let message = if one.starts_with("RTSP/") || one.starts_with("HTTP/") {
        let status = two.parse().ok().filter(|status| (100..1000).contains(status));
        let status = status.ok_or(Malformed::Text("its status is no number of three digits"))?;
        complete.map(|body| Message::Response { status, headers, body })
    } else {
        let protocol = match three {
            Some("RTSP/1.0") => Protocol::Rtsp,
            // Old clients of tunnels name none.
            Some("HTTP/1.1") if headers.get("host").is_none() && headers.get("x-sessioncookie").is_none() => {
                return Err(Malformed::Text("it names no host"));
            }
            Some("HTTP/1.0" | "HTTP/1.1") => Protocol::Http,
            _ => return Err(Malformed::Text("it speaks neither RTSP/1.0 nor HTTP/1.1")),
        };
        if words.next().is_some() || !one.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') {
            return Err(Malformed::Text("its first line is not METHOD TARGET VERSION"));
        }
        let (method, target) = (one.to_owned(), two.to_owned());
        complete.map(|body| Message::Request { protocol, method, target, headers, body })
    };
    Ok(message.map(|message| (message, skipped + all)))
}

/// What a status means (RFC 2326, section 7.1.1; RFC 9110, section 15).
pub fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        454 => "Session Not Found",
        455 => "Method Not Valid in This State",
        459 => "Aggregate Operation Not Allowed",
        461 => "Unsupported Transport",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

/// Writes a message: a first line, headers, content.
pub fn write(first: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{first}\r\n");
    for (name, value) in headers {
        // A value is one line, whoever made it.
        let _ = write!(text, "{name}: ");
        text.extend(value.chars().filter(|c| !c.is_control()));
        text.push_str("\r\n");
    }
    if !body.is_empty() {
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds { head_bytes: 512, body_bytes: 64 };

    #[test]
    fn messages_are_taken_one_after_the_other() {
        let stream = b"\r\nOPTIONS rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n$\x01\x00\x03abcRTSP/1.0 200 OK\nContent-length:  2\n\nhi";
        let (first, n) = take(stream, BOUNDS).unwrap().unwrap();
        let Message::Request { protocol: Protocol::Rtsp, method, target, headers, .. } = first else { panic!() };
        assert_eq!((method.as_str(), target.as_str(), headers.get("cseq")), ("OPTIONS", "rtsp://a/b", Some("1")));
        let (data, m) = take(&stream[n..], BOUNDS).unwrap().unwrap();
        assert_eq!(data, Message::Data { channel: 1, range: 4..7 });
        let (last, l) = take(&stream[n + m..], BOUNDS).unwrap().unwrap();
        assert!(matches!(last, Message::Response { status: 200, body, .. } if body == b"hi"));
        assert_eq!(n + m + l, stream.len());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length : 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 65\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "get / HTTP/1.1\r\n\r\n",
            "\x16\x03\x01",
            "RTSP/1.0 2000 OK\r\n\r\n",
        ] {
            assert!(take(text.as_bytes(), BOUNDS).is_err(), "{text:?}");
        }
        let endless = vec![b'A'; 600];
        assert_eq!(take(&endless, BOUNDS), Err(Malformed::Head(512)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        /// Any bytes are taken without a panic, and a prefix never says something else than the whole does: it asks for more,
        /// or takes the same.
        #[test]
        fn bytes_are_taken_alike_whole_or_in_pieces(
            words in prop::collection::vec(prop_oneof![
                Just("GET / HTTP/1.1\r\nHost: h\r\n".to_owned()), Just("RTSP/1.0 200 OK\r\n".to_owned()), Just("\r\n".to_owned()),
                Just("Content-Length: 5\r\n".to_owned()), Just("$".to_owned()), Just("\n".to_owned()), Just(" ".to_owned()),
                "[ -~\r\n\u{0}]{0,12}",
            ], 0..12),
            cut in 0..200_usize,
        ) {
            let bytes = words.concat().into_bytes();
            let whole = take(&bytes, BOUNDS);
            let part = take(&bytes[..cut.min(bytes.len())], BOUNDS);
            match &part {
                Ok(Some(taken)) => {
                    prop_assert!(taken.1 <= bytes.len());
                    prop_assert_eq!(&whole, &part);
                }
                Err(Malformed::Text(_) | Malformed::Body(..)) => prop_assert!(whole.is_err()),
                _ => {}
            }
        }

        #[test]
        fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(Some((_, taken))) = take(&bytes, BOUNDS) {
                prop_assert!(taken > 0 && taken <= bytes.len());
            }
        }
    }
}
