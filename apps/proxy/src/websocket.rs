//! WebSocket (RFC 6455), as far as a stream to a browser needs it; the crate `tungstenite` knows its handshake and its frames.

use crate::text::{Headers, reason, write};
use std::io::Cursor;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// Bytes of what a viewer may say at once: it has nothing to say but that it is there.
const SAID_MAX: u64 = 1 << 10;

fn head(opcode: OpCode, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Nothing is refused by a vector.
    let _ = FrameHeader { opcode, ..FrameHeader::default() }.format(length as u64, &mut bytes);
    bytes
}

/// Puts the head of a message of data before what was written from a place on.
pub fn enclose(bytes: &mut Vec<u8>, start: usize) {
    let head = head(OpCode::Data(Data::Binary), bytes.len() - start);
    bytes.splice(start..start, head);
}

/// A message of text.
pub fn text(text: &str) -> Vec<u8> {
    let mut bytes = head(OpCode::Data(Data::Text), text.len());
    bytes.extend(text.bytes());
    bytes
}

/// The end, with a reason for people: try again later (section 7.4 and IANA's list, 1013).
pub fn later(reason: &str) -> Vec<u8> {
    let mut bytes = head(OpCode::Control(Control::Close), 2 + reason.len());
    bytes.extend(1013_u16.to_be_bytes());
    bytes.extend(reason.bytes());
    bytes
}

/// The answer to who wants to speak it; nothing where the request is none (section 4.2.1), or comes from a page of somebody
/// else, which would see what only its reader may.
pub fn accept(headers: &Headers) -> Option<Vec<u8>> {
    let has = |name: &str, word: &str| {
        headers.all(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get("sec-websocket-key").filter(|key| key.len() == 24)?;
    let origin = headers.get("origin").map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    let is_own = origin.is_none_or(|origin| headers.get("host").is_some_and(|host| host.eq_ignore_ascii_case(origin)));
    if !has("upgrade", "websocket") || !has("connection", "upgrade") || !has("sec-websocket-version", "13") || !is_own {
        return None;
    }
    let accept = derive_accept_key(key.as_bytes());
    let fields = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept.as_str())];
    Some(write(&format!("HTTP/1.1 101 {}", reason(101)), &fields, &[]))
}

/// What a viewer said.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing that needs an answer; so many bytes of it.
    Nothing(usize),
    /// This is the answer to so many bytes.
    Answer(usize, Vec<u8>),
    /// It ends; this is the answer.
    End(Vec<u8>),
}

/// Takes one frame from the beginning of what was said; nothing while it is not complete.
///
/// # Errors
/// It breaks the protocol: there is nothing to answer.
pub fn take(bytes: &[u8]) -> Result<Option<Said>, &'static str> {
    let mut cursor = Cursor::new(bytes);
    let Some((header, length)) = FrameHeader::parse(&mut cursor).map_err(|_| "it is no frame")? else {
        return Ok(None);
    };
    let (Some(mask), true) = (header.mask, length <= SAID_MAX) else { return Err("it is not masked, or too long") };
    let start = cursor.position() as usize;
    let end = start + length as usize;
    let Some(masked) = bytes.get(start..end) else { return Ok(None) };
    let said = || masked.iter().enumerate().map(|(i, byte)| byte ^ mask[i % 4]);
    let answer = |control, length: usize| {
        let mut answer = head(OpCode::Control(control), length);
        answer.extend(said().take(length));
        answer
    };
    if matches!(header.opcode, OpCode::Control(_)) && length > 125 {
        return Err("a control frame is too long");
    }
    Ok(Some(match header.opcode {
        OpCode::Control(Control::Ping) => Said::Answer(end, answer(Control::Pong, masked.len())),
        OpCode::Control(Control::Close) => Said::End(answer(Control::Close, masked.len().min(2))),
        _ => Said::Nothing(end),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Bounds, Message, take as take_text};
    use proptest::prelude::*;

    #[test]
    fn a_browser_is_let_in_and_another_page_is_not() {
        let asked = |more: &str| {
            // The key of RFC 6455, section 1.3.
            let text = format!(
                "GET /a.ws HTTP/1.1\r\nHost: h:80\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{more}\r\n"
            );
            let bounds = Bounds { head_bytes: 4096, body_bytes: 0 };
            let Some((Message::Request { headers, .. }, _)) = take_text(text.as_bytes(), bounds).unwrap() else {
                panic!()
            };
            accept(&headers).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let told = asked("Origin: http://h:80\r\n").unwrap();
        assert!(told.starts_with("HTTP/1.1 101 ") && told.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{told}");
        assert!(asked("").is_some() && asked("Origin: http://other\r\n").is_none());
    }

    #[test]
    fn frames_are_answered() {
        assert_eq!(
            take(&[0x89, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]),
            Ok(Some(Said::Answer(8, vec![0x8a, 2, b'h', b'i'])))
        );
        assert_eq!(take(&[0x88, 0x82, 0, 0, 0, 0, 3, 0xe8]), Ok(Some(Said::End(vec![0x88, 2, 3, 0xe8]))));
        assert_eq!(take(&[0x81, 0x81, 0, 0, 0, 0, b'x']), Ok(Some(Said::Nothing(7))));
        assert_eq!(take(&[0x89, 0x82, 1, 2, 3]), Ok(None));
        assert!(take(&[0x81, 1, b'x']).is_err() && take(&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let mut bytes = vec![9, 1, 2];
        enclose(&mut bytes, 1);
        assert_eq!(bytes, [9, 0x82, 2, 1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(300)) })]

        #[test]
        fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(Some(Said::Nothing(taken) | Said::Answer(taken, _))) = take(&bytes) {
                prop_assert!(taken > 0 && taken <= bytes.len());
            }
        }
    }
}
