//! RTSP over HTTP, as QuickTime began it and cameras' software goes on with it, for viewers behind firewalls that pass HTTP only: what goes
//! to the viewer is the answer to a GET, what comes from it is the content of a POST, in base64 and without an end; a header,
//! `x-sessioncookie`, says which belong together.
//!
//! The second connection becomes part of the first, so the rest of the program sees one viewer.

use crate::counts::Counted;
use crate::text::Headers;
use crate::wire::Wire;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;

/// The way back of a viewer.
pub struct Back {
    /// Never blocks.
    pub wire: Wire,
    /// Base64 as it comes.
    pub decoder: Decoder,
    /// What came before it was known whose it is.
    pub before: BytesMut,
    /// Counts the connection while it lives.
    pub counted: Counted,
}

/// Both ways of a viewer.
pub struct Tunnel {
    /// What both were called.
    pub cookie: String,
    /// The second, while there is one.
    pub back: Option<Box<Back>>,
}

/// What a request of a tunnel is called, if it is one.
pub fn cookie(headers: &Headers) -> Option<&str> {
    headers.get("x-sessioncookie").filter(|cookie| (1..=128).contains(&cookie.len()))
}

/// What is sent before RTSP.
pub const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/x-rtsp-tunnelled\r\nConnection: close\r\n\
    Cache-Control: no-store\r\nPragma: no-cache\r\n\r\n";

/// Base64 as it comes: in pieces, each request of its own with what fills it up.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// Takes what came and puts what it means at the end.
    ///
    /// # Errors
    /// It is no base64.
    pub fn take(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<(), base64::DecodeSliceError> {
        for byte in bytes.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            self.held.push(*byte);
            if self.held.len() == 4 {
                let mut group = [0; 3];
                let length = STANDARD.decode_slice(&self.held, &mut group)?;
                out.extend_from_slice(&group[..length]);
                self.held.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Bounds, Message, take};
    use proptest::prelude::*;

    /// What is kept of somebody by a name that it chose is little.
    #[test]
    fn cookies_are_short() {
        let is_one = |length: usize| {
            let text = format!("GET /x HTTP/1.0\r\nX-SessionCookie: {}\r\n\r\n", "c".repeat(length));
            let taken = take(text.as_bytes(), Bounds { head_bytes: 1000, body_bytes: 0 });
            let Ok(Some((Message::Request { headers, .. }, _))) = taken else { panic!("{taken:?}") };
            cookie(&headers).is_some()
        };
        assert_eq!([0, 1, 128, 129].map(is_one), [false, true, true, false]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(crate::cases(200)) })]

        /// However the text is cut, what was encoded comes out.
        #[test]
        fn pieces_are_decoded(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6), cut in 1..30_usize) {
            let text: String = parts.iter().map(|part| STANDARD.encode(part) + "\r\n").collect();
            let (mut decoder, mut out) = (Decoder::default(), BytesMut::new());
            for piece in text.as_bytes().chunks(cut) {
                decoder.take(piece, &mut out).unwrap();
            }
            prop_assert_eq!(&out[..], &parts.concat()[..]);
        }

        #[test]
        fn nonsense_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Decoder::default().take(&bytes, &mut BytesMut::new());
        }
    }
}
