//! Headers of .npy files, versions 1.0, 2.0 and 3.0 (NumPy's `numpy.lib.format` documentation).
//!
//! ```text
//! byte 0      "\x93NUMPY"  major  minor
//! byte 8      length of the text: u16 (version 1) or u32 (versions 2 and 3), little-endian
//! byte 10/12  "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" spaces "\n"
//! then        the elements, row by row
//! ```
//! Read are C order and the types of [`ElementType::KNOWN`], or one that the reader expects; everything else is refused with the way to convert it, and never
//! misread. The text is untrusted: lengths are bounded, shapes are multiplied with overflow checks.

use multigrain_program::ElementType;

mod dict;

/// First bytes of every .npy file.
pub const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// Longest header text that is accepted; NumPy itself stops at 10 000 bytes unless told otherwise.
pub const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Most dimensions that are accepted; NumPy 2 allows 64.
pub const RANK_MAX: usize = 64;
/// Where the data of files that this crate writes starts: a page, so that direct I/O needs no detour.
pub const DATA_OFFSET_BYTES: u64 = 4096;

/// What a .npy header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayHeader {
    /// Type of the elements.
    pub element: ElementType,
    /// Extent in each dimension, slowest first; empty for a single element.
    pub shape: Vec<u64>,
    /// First byte of the data.
    pub data_offset_bytes: u64,
}

/// Why a header is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The first bytes are others.
    #[error("this is no .npy file (it does not start with \\x93NUMPY); save it with numpy.save")]
    NotNpy,
    /// A version from the future.
    #[error(".npy version {major}.{minor} is not known; versions 1.0, 2.0 and 3.0 are read")]
    Version {
        /// First number.
        major: u8,
        /// Second number.
        minor: u8,
    },
    /// The file ends inside the header.
    #[error("the .npy header is cut off: it needs {needed_bytes} bytes, the file has {found_bytes}")]
    CutOff {
        /// Bytes up to the end of the header.
        needed_bytes: u64,
        /// Bytes in the file.
        found_bytes: u64,
    },
    /// The length of the text is absurd.
    #[error("the .npy header claims {found_bytes} bytes of text; at most {TEXT_BYTES_MAX} are accepted")]
    TextTooLong {
        /// The claimed length.
        found_bytes: u64,
    },
    /// The text is no dictionary of the three keys.
    #[error("the .npy header is malformed at byte {at} of its text: {problem}")]
    Malformed {
        /// Byte of the text.
        at: usize,
        /// What was expected or found there.
        problem: String,
    },
    /// Column-major data.
    #[error(
        "the array is in Fortran (column-major) order; convert it: a = numpy.load(path, mmap_mode='r'); \
        numpy.lib.format.open_memmap(new_path, 'w+', a.dtype, a.shape)[:] = a"
    )]
    FortranOrder,
    /// Big-endian data.
    #[error(
        "the elements are big-endian ('{descr}'); convert them: a = numpy.load(path, mmap_mode='r'); \
        numpy.lib.format.open_memmap(new_path, 'w+', a.dtype.newbyteorder('<'), a.shape)[:] = a"
    )]
    BigEndian {
        /// The type string of the header.
        descr: String,
    },
    /// A type that is not read.
    #[error("elements of type '{descr}' are not read; known are {}; convert with numpy.ndarray.astype",
        ElementType::KNOWN.map(|e| format!("{} ('{}')", e.name(), e.descr())).join(", "))]
    Element {
        /// The type string of the header.
        descr: String,
    },
    /// Too many dimensions.
    #[error("the array has {found} dimensions; at most {RANK_MAX} are accepted")]
    Rank {
        /// Dimensions in the header.
        found: usize,
    },
    /// The shape cannot be counted in 64 bits.
    #[error("an array of shape {shape:?} of {element} has more bytes than 64 bits can count: the header lies")]
    TooLarge {
        /// The element type.
        element: ElementType,
        /// The shape.
        shape: Vec<u64>,
    },
}

/// Bytes of an array's data; `None` when 64 bits (as a file offset: 63) cannot count them.
pub fn data_bytes(element: ElementType, shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let bytes = shape.iter().try_fold(element.size_bytes(), |product, &extent| product.checked_mul(extent))?;
    (bytes <= i64::MAX as u64 / 2).then_some(bytes)
}

/// Bytes from the start of the file that must be read before [`parse`] can be called, told by its first 12 bytes
/// (fewer only if the file is shorter).
///
/// # Errors
/// [`HeaderError`] when these bytes already show that the file is not accepted.
pub fn header_bytes(start: &[u8]) -> Result<u64, HeaderError> {
    if start.len() < MAGIC.len() || start[..MAGIC.len()] != MAGIC {
        return Err(HeaderError::NotNpy);
    }
    let cut_off = |needed: u64| HeaderError::CutOff { needed_bytes: needed, found_bytes: start.len() as u64 };
    let (&[major, minor], rest) = start[MAGIC.len()..].split_first_chunk::<2>().ok_or_else(|| cut_off(10))?;
    let (prefix, text) = match (major, minor) {
        (1, 0) => {
            let length = rest.first_chunk::<2>().ok_or_else(|| cut_off(10))?;
            (10, u64::from(u16::from_le_bytes(*length)))
        }
        (2 | 3, 0) => {
            let length = rest.first_chunk::<4>().ok_or_else(|| cut_off(12))?;
            (12, u64::from(u32::from_le_bytes(*length)))
        }
        _ => return Err(HeaderError::Version { major, minor }),
    };
    if text > TEXT_BYTES_MAX {
        return Err(HeaderError::TextTooLong { found_bytes: text });
    }
    Ok(prefix + text)
}

/// Reads a header from the first bytes of a file (at least [`header_bytes`] of them).
///
/// # Errors
/// [`HeaderError`]: what is wrong and how the file can be converted.
pub fn parse(bytes: &[u8]) -> Result<ArrayHeader, HeaderError> {
    parse_among(bytes, &ElementType::KNOWN)
}

/// As [`parse`], where the elements may also be of this type, which need not be [known](ElementType::KNOWN).
///
/// # Errors
/// As [`parse`].
pub fn parse_as(bytes: &[u8], element: ElementType) -> Result<ArrayHeader, HeaderError> {
    let mut elements = vec![element];
    elements.extend(ElementType::KNOWN);
    parse_among(bytes, &elements)
}

fn parse_among(bytes: &[u8], elements: &[ElementType]) -> Result<ArrayHeader, HeaderError> {
    let end = header_bytes(bytes)?;
    let cut_off = || HeaderError::CutOff { needed_bytes: end, found_bytes: bytes.len() as u64 };
    let prefix = if bytes[6] == 1 { 10 } else { 12 };
    let text = bytes.get(prefix..end as usize).ok_or_else(cut_off)?;
    let dict = dict::parse(text)?;
    if dict.shape.len() > RANK_MAX {
        return Err(HeaderError::Rank { found: dict.shape.len() });
    }
    let element = element_of(&dict.descr, elements)?;
    // One dimension at most is longer than 1: both orders are the same.
    if dict.fortran_order && dict.shape.iter().filter(|&&extent| extent > 1).count() > 1 {
        return Err(HeaderError::FortranOrder);
    }
    if data_bytes(element, &dict.shape).is_none() {
        return Err(HeaderError::TooLarge { element, shape: dict.shape });
    }
    Ok(ArrayHeader { element, shape: dict.shape, data_offset_bytes: end })
}

/// The element type of a type string: an order (`<` little, `>` big, `|` where there is none, or nothing for single bytes), a kind
/// and a size.
fn element_of(descr: &str, elements: &[ElementType]) -> Result<ElementType, HeaderError> {
    let kind = descr.trim_start_matches(['<', '>', '|']);
    let order = &descr[..descr.len() - kind.len()];
    let same = |element: &&ElementType| element.descr()[1..] == *kind;
    match elements.iter().find(same) {
        Some(&element) if order == &element.descr()[..1] || (element.size_bytes() == 1 && order.len() <= 1) => {
            Ok(element)
        }
        Some(_) if order == ">" => Err(HeaderError::BigEndian { descr: descr.to_owned() }),
        _ => Err(HeaderError::Element { descr: descr.to_owned() }),
    }
}

/// The first [`DATA_OFFSET_BYTES`] of a .npy file: version 1.0, C order, padded so that the data starts on a page.
///
/// # Errors
/// [`HeaderError::Rank`] and [`HeaderError::TooLarge`] for shapes that no file can have.
pub fn write(element: ElementType, shape: &[u64]) -> Result<Vec<u8>, HeaderError> {
    if shape.len() > RANK_MAX {
        return Err(HeaderError::Rank { found: shape.len() });
    }
    if data_bytes(element, shape).is_none() {
        return Err(HeaderError::TooLarge { element, shape: shape.to_vec() });
    }
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = if extents.len() == 1 { format!("({},)", extents[0]) } else { format!("({})", extents.join(", ")) };
    let text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {tuple}, }}", element.descr());
    // 64 dimensions of 20 digits are 1408 bytes: the text always fits the page.
    let total = DATA_OFFSET_BYTES as usize;
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&((total - 10) as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    Ok(bytes)
}
