//! The text of a .npy header: a Python dictionary literal with the keys `descr`, `fortran_order` and `shape`.

use super::HeaderError;

/// The three values of the dictionary.
pub(super) struct Dict {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

/// Reads the dictionary; keys in any order, each exactly once.
pub(super) fn parse(text: &[u8]) -> Result<Dict, HeaderError> {
    let mut reader = Reader { text, at: 0 };
    let (mut descr, mut order, mut shape) = (None, None, None);
    reader.expect(b'{')?;
    while !reader.accept(b'}') {
        let key_at = reader.at;
        let key = reader.string()?;
        reader.expect(b':')?;
        let twice = match key.as_str() {
            "descr" => descr.replace(reader.descr()?).is_some(),
            "fortran_order" => order.replace(reader.boolean()?).is_some(),
            "shape" => shape.replace(reader.shape()?).is_some(),
            _ => return Err(malformed(key_at, format!("unknown key '{key}'"))),
        };
        if twice {
            return Err(malformed(key_at, format!("key '{key}' stands twice")));
        }
        if !reader.accept(b',') {
            reader.expect(b'}')?;
            break;
        }
    }
    reader.end()?;
    let missing = |key: &str| malformed(text.len(), format!("key '{key}' is missing"));
    Ok(Dict {
        descr: descr.ok_or_else(|| missing("descr"))?,
        fortran_order: order.ok_or_else(|| missing("fortran_order"))?,
        shape: shape.ok_or_else(|| missing("shape"))?,
    })
}

fn malformed(at: usize, problem: impl Into<String>) -> HeaderError {
    HeaderError::Malformed { at, problem: problem.into() }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), HeaderError> {
        if self.accept(byte) { Ok(()) } else { Err(malformed(self.at, format!("'{}' is expected", char::from(byte)))) }
    }

    /// Only padding may follow the dictionary.
    fn end(&mut self) -> Result<(), HeaderError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(malformed(self.at, "text after the dictionary")) }
    }

    /// A quoted string without escapes; no known key or type needs one.
    fn string(&mut self) -> Result<String, HeaderError> {
        self.skip_space();
        let quote = match self.text.get(self.at) {
            Some(&quote @ (b'\'' | b'"')) => quote,
            _ => return Err(malformed(self.at, "a quoted string is expected")),
        };
        let start = self.at + 1;
        let len = self.text[start..].iter().position(|&b| b == quote);
        let len = len.ok_or_else(|| malformed(self.at, "the string does not end"))?;
        let bytes = &self.text[start..start + len];
        if bytes.contains(&b'\\') {
            return Err(malformed(start, "escapes are not expected in a string"));
        }
        self.at = start + len + 1;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The type: a string, or the list of fields of a record, which is kept as text so that the message can show it.
    fn descr(&mut self) -> Result<String, HeaderError> {
        self.skip_space();
        if self.text.get(self.at) == Some(&b'[') {
            return Err(HeaderError::Element { descr: "a record of several fields".into() });
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if rest.starts_with(word) && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(malformed(self.at, "True or False is expected"))
    }

    /// A tuple of extents: `()`, `(3,)`, `(3, 4)`.
    fn shape(&mut self) -> Result<Vec<u64>, HeaderError> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            shape.push(self.integer()?);
            if !self.accept(b',') {
                self.expect(b')')?;
                // `(3)` is a number in parentheses, not a tuple.
                if shape.len() == 1 {
                    return Err(malformed(self.at, "the shape is no tuple: a ',' is missing"));
                }
                break;
            }
        }
        Ok(shape)
    }

    fn integer(&mut self) -> Result<u64, HeaderError> {
        self.skip_space();
        let start = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        // Python 2 wrote long integers with an L.
        let digits = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        if digits.is_empty() {
            return Err(malformed(start, "an extent (a whole number of at least 0) is expected"));
        }
        digits.parse().map_err(|_| malformed(start, format!("the extent {digits} does not fit 64 bits")))
    }
}
