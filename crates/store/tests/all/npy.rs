//! .npy headers: what NumPy writes is read, what this crate writes is what NumPy would read, everything else is refused.

use crate::support;

use multigrain_store::npy::{self, HeaderError};
use multigrain_store::{BackendChoice, ElementType, StoreError};
use support::*;

/// A header as NumPy makes it: the text padded so that the data starts at a multiple of 64.
fn header(major: u8, text: &str) -> Vec<u8> {
    let prefix = if major == 1 { 10 } else { 12 };
    let total = (prefix + text.len() + 1).next_multiple_of(64);
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([major, 0]);
    let len = (total - prefix) as u32;
    bytes.extend_from_slice(&len.to_le_bytes()[..if major == 1 { 2 } else { 4 }]);
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn dict(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}")
}

#[test]
fn what_numpy_writes_is_read() {
    // The bytes of numpy.save("a.npy", numpy.zeros((2, 3), "f4")) as NumPy 1.26 writes them, up to the data.
    let saved = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                          \n";
    let parsed = npy::parse(saved).unwrap();
    assert_eq!((parsed.element, &parsed.shape[..], parsed.data_offset_bytes), (ElementType::F32, &[2, 3][..], 128));
    for major in 1..=3 {
        let numpys = ["|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<c8", "<c16"];
        for (descr, element) in numpys.into_iter().zip(ElementType::KNOWN) {
            for (text, shape) in
                [("()", vec![]), ("(7,)", vec![7]), ("(2, 3)", vec![2, 3]), ("(1,0,3,)", vec![1, 0, 3])]
            {
                let bytes = header(major, &dict(descr, "False", text));
                let parsed = npy::parse(&bytes).unwrap();
                assert_eq!((parsed.element, parsed.shape), (element, shape), "{major} {descr} {text}");
                assert_eq!(parsed.data_offset_bytes, bytes.len() as u64);
            }
        }
    }
    // Any order of the keys, any quotes, no comma at the end, long integers of Python 2.
    let odd = "{\"shape\":(2L, 3L),'fortran_order':False ,\n 'descr':\"<f8\"}";
    assert_eq!(npy::parse(&header(1, odd)).unwrap().shape, [2, 3]);
    // With one long dimension both orders are the same.
    assert!(npy::parse(&header(1, &dict("<f4", "True", "(1, 9, 1)"))).is_ok());
}

#[test]
fn written_headers_are_read_back_and_fill_a_page() {
    let mut random = Random::new(10);
    for n in 0..200 {
        let rank = random.below(6) as usize;
        let shape: Vec<u64> = (0..rank).map(|_| random.below(50)).collect();
        let element = ELEMENTS[n % 12];
        let bytes = npy::write(element, &shape).unwrap();
        assert_eq!(bytes.len() as u64, npy::DATA_OFFSET_BYTES);
        assert_eq!(bytes.last(), Some(&b'\n'));
        let parsed = npy::parse(&bytes).unwrap();
        assert_eq!((parsed.element, parsed.shape, parsed.data_offset_bytes), (element, shape, npy::DATA_OFFSET_BYTES));
    }
    let text = String::from_utf8(npy::write(ElementType::C64, &[5]).unwrap()[10..80].to_vec()).unwrap();
    assert!(text.starts_with("{'descr': '<c8', 'fortran_order': False, 'shape': (5,), }"), "{text}");
    let widest = vec![1; 64];
    assert_eq!(npy::parse(&npy::write(ElementType::U8, &widest).unwrap()).unwrap().shape, widest);
    assert!(matches!(npy::write(ElementType::U8, &[1; 65]), Err(HeaderError::Rank { found: 65 })));
    assert!(matches!(npy::write(ElementType::F64, &[1 << 40, 1 << 40]), Err(HeaderError::TooLarge { .. })));
}

#[test]
fn hostile_headers_are_refused() {
    let parse = |text: &str| npy::parse(&header(1, text)).unwrap_err();
    assert_eq!(parse(&dict("<f4", "True", "(2, 3)")), HeaderError::FortranOrder);
    assert!(parse(&dict("<f4", "True", "(2, 3)")).to_string().contains("open_memmap"));
    for descr in [">f4", ">f8", ">c8", ">i2", ">u8"] {
        assert_eq!(parse(&dict(descr, "False", "(2,)")), HeaderError::BigEndian { descr: descr.into() });
    }
    for descr in ["<f2", "|O", "<U7", "", "f4", "|f4", "=f4", "<<f4", "|b1", "<i3"] {
        assert_eq!(parse(&dict(descr, "False", "(2,)")), HeaderError::Element { descr: descr.into() });
    }
    let record = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }";
    assert!(matches!(parse(record), HeaderError::Element { .. }));
    for shape in ["(18446744073709551615, 2)", "(4294967296, 4294967296)", "(9223372036854775807,)"] {
        assert!(matches!(parse(&dict("<f4", "False", shape)), HeaderError::TooLarge { .. }), "{shape}");
    }
    let deep = format!("({})", "1, ".repeat(65));
    assert_eq!(parse(&dict("<f4", "False", &deep)), HeaderError::Rank { found: 65 });
    for text in [
        "",
        "[]",
        "{",
        "{}",
        "{'descr': '<f4'",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}",
    ] {
        assert!(matches!(parse(text), HeaderError::Malformed { .. }), "{text}: {}", parse(text));
    }
    for order in ["false", "1", "Falsey", "None"] {
        assert!(matches!(parse(&dict("<f4", order, "(2,)")), HeaderError::Malformed { .. }), "{order}");
    }
    for shape in
        ["2", "(2)", "(2 3)", "(-1,)", "(1.5,)", "(,)", "(2,,3)", "[2, 3]", "(99999999999999999999,)", "(0x10,)"]
    {
        assert!(matches!(parse(&dict("<f4", "False", shape)), HeaderError::Malformed { .. }), "{shape}");
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    let whole = header(1, &dict("<f4", "False", "(2, 3)"));
    for len in 0..whole.len() {
        let error = npy::parse(&whole[..len]).unwrap_err();
        assert!(matches!(error, HeaderError::NotNpy | HeaderError::CutOff { .. }), "{len}: {error}");
    }
    let mut bytes = header(2, &dict("<f4", "False", "(2, 3)"));
    bytes[8..12].fill(0xff);
    assert_eq!(npy::parse(&bytes), Err(HeaderError::TextTooLong { found_bytes: u64::from(u32::MAX) }));
    for (major, minor) in [(0, 0), (1, 1), (4, 0), (255, 255)] {
        let mut bytes = whole.clone();
        (bytes[6], bytes[7]) = (major, minor);
        assert_eq!(npy::parse(&bytes), Err(HeaderError::Version { major, minor }));
    }
    assert_eq!(npy::parse(b"PK\x03\x04 an archive of arrays"), Err(HeaderError::NotNpy));
}

/// Whatever the bytes, the answer is a header or an error.
#[test]
fn mutated_headers_never_panic() {
    let mut random = Random::new(11);
    let whole = header(1, &dict("<f4", "False", "(123, 45, 6)"));
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = 6 + random.below(bytes.len() as u64 - 6) as usize;
            let alphabet = b"0123456789,(){}':LTF<> \n\xff\x00";
            bytes[at] = alphabet[random.below(alphabet.len() as u64) as usize];
        }
        bytes.truncate(random.below(bytes.len() as u64 * 4) as usize);
        if let Ok(parsed) = npy::parse(&bytes) {
            accepted += 1;
            assert!(npy::data_bytes(parsed.element, &parsed.shape).is_some());
            assert!(parsed.data_offset_bytes <= bytes.len() as u64);
        }
    }
    assert!(accepted > 100, "some mutations are harmless: {accepted}");
}

#[test]
fn files_are_checked_against_their_headers() {
    let scratch = Scratch::new();
    let disk = disk(BackendChoice::Auto);
    let path = scratch.path("a.npy");
    let good = [header(1, &dict("<f4", "False", "(2, 3)")), vec![1; 24]].concat();
    std::fs::write(&path, &good).unwrap();
    assert_eq!(read_all(&disk, &disk.open_npy(&path).unwrap()).unwrap(), vec![1; 24]);

    std::fs::write(&path, &good[..good.len() - 1]).unwrap();
    let error = disk.open_npy(&path).unwrap_err();
    assert_eq!(error, StoreError::Truncated { path: path.clone(), needed_bytes: 152, found_bytes: 151 });
    std::fs::write(&path, [&good[..], b"x"].concat()).unwrap();
    assert!(matches!(disk.open_npy(&path), Err(StoreError::TrailingBytes { .. })));
    std::fs::write(&path, &good[..60]).unwrap();
    let error = disk.open_npy(&path).unwrap_err();
    assert!(matches!(&error, StoreError::Header { problem: HeaderError::CutOff { .. }, .. }), "{error}");
    assert!(error.to_string().contains("a.npy"), "{error}");
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(disk.open_npy(&path), Err(StoreError::Header { problem: HeaderError::NotNpy, .. })));

    std::fs::write(&path, [1; 24]).unwrap();
    assert!(disk.open_raw(&path, ElementType::F32, &[2, 3]).is_ok());
    assert!(matches!(disk.open_raw(&path, ElementType::F32, &[2, 4]), Err(StoreError::Truncated { .. })));
    assert!(matches!(disk.open_raw(&path, ElementType::F32, &[5]), Err(StoreError::TrailingBytes { .. })));
    let huge = [u64::MAX, u64::MAX];
    assert!(matches!(disk.open_raw(&path, ElementType::F32, &huge), Err(StoreError::TooLarge { .. })));

    let missing = disk.open_npy(scratch.path("none.npy")).unwrap_err();
    assert!(missing.to_string().contains("none.npy") && missing.to_string().contains("check the path"), "{missing}");
    assert!(matches!(disk.open_npy(scratch.directory()), Err(StoreError::NotAFile { found: "a directory", .. })));
    assert!(matches!(disk.open_npy("/dev/null"), Err(StoreError::NotAFile { .. })));
}
