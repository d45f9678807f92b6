//! Pictures: what is written is read back, and damaged files give errors that name them.

use multigrain_conv2d::picture::{self, Picture, PictureError, SAMPLES_MAX};
use png::{BitDepth, ColorType};
use std::fs;
use std::path::Path;

fn encode(path: &Path, cols: u32, rows: u32, color: ColorType, depth: BitDepth, data: &[u8]) {
    let mut encoder = png::Encoder::new(fs::File::create(path).unwrap(), cols, rows);
    encoder.set_color(color);
    encoder.set_depth(depth);
    if color == ColorType::Indexed {
        encoder.set_palette(vec![255, 0, 0, 0, 51, 255]);
        encoder.set_trns(vec![255, 0]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
}

fn sample(planes: usize, alpha: bool) -> Picture {
    let (rows, cols) = (5, 7);
    let plane = |p: usize| (0..rows * cols).map(|i| ((i * 7 + p * 31) % 256) as f32 / 255.0).collect();
    let alpha = alpha.then(|| plane(9));
    Picture { rows, cols, planes: (0..planes).map(plane).collect(), alpha }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.png");
    for (planes, alpha) in [(1, false), (1, true), (3, false), (3, true)] {
        let picture = sample(planes, alpha);
        picture::write(&path, &picture).unwrap();
        assert_eq!(picture::read(&path, SAMPLES_MAX).unwrap(), picture);
    }
    assert_eq!(names(folder.path()), ["p.png"], "no temporary file stays");
}

#[test]
fn every_kind_of_sample_becomes_a_fraction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.png");
    let read = || picture::read(&path, SAMPLES_MAX).unwrap();

    encode(&path, 2, 1, ColorType::Grayscale, BitDepth::Sixteen, &[0x80, 0x01, 0xff, 0xff]);
    assert_eq!(read().planes, [[32769.0 / 65535.0, 1.0]]);
    encode(&path, 2, 1, ColorType::GrayscaleAlpha, BitDepth::Sixteen, &[0, 1, 0, 2, 0, 3, 0, 4]);
    assert_eq!(read().planes, [[1.0 / 65535.0, 3.0 / 65535.0]]);
    assert_eq!(read().alpha.unwrap(), [2.0 / 65535.0, 4.0 / 65535.0]);
    encode(&path, 3, 1, ColorType::Grayscale, BitDepth::Two, &[0b00_01_11_00]);
    assert_eq!(read().planes, [[0.0, 1.0 / 3.0, 1.0]]);
    encode(&path, 2, 1, ColorType::Indexed, BitDepth::One, &[0b0100_0000]);
    assert_eq!(read().planes, [[1.0, 0.0], [0.0, 0.2], [0.0, 1.0]]);
    assert_eq!(read().alpha.unwrap(), [1.0, 0.0]);
    encode(&path, 1, 1, ColorType::Rgb, BitDepth::Sixteen, &[0, 0, 255, 255, 0, 1]);
    assert_eq!(read().planes, [[0.0], [1.0], [1.0 / 65535.0]]);
}

#[test]
fn values_are_clamped_and_rounded_halves_upwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.png");
    let values = vec![-1.0, f32::NAN, f32::NEG_INFINITY, 0.5, 1.5, f32::INFINITY, 0.1];
    let gray = Picture { rows: 1, cols: values.len(), planes: vec![values], alpha: None };
    picture::write(&path, &gray).unwrap();
    let levels: Vec<f32> = picture::read(&path, SAMPLES_MAX).unwrap().planes[0].iter().map(|v| v * 255.0).collect();
    assert_eq!(levels, [0.0, 0.0, 0.0, 128.0, 255.0, 255.0, 26.0]);
}

#[test]
fn a_file_cut_anywhere_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.png");
    picture::write(&path, &sample(3, true)).unwrap();
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let error = picture::read(&path, SAMPLES_MAX).expect_err(&format!("cut at {len}"));
        assert!(matches!(error, PictureError::Format { .. }), "cut at {len}: {error}");
        assert!(error.to_string().contains("cut.png"), "{error}");
    }
}

#[test]
fn a_file_with_any_byte_changed_is_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.png");
    let picture = sample(1, false);
    picture::write(&path, &picture).unwrap();
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for flip in [1_u8, 0x20, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= flip;
            fs::write(&path, &bytes).unwrap();
            // Every chunk has a checksum, so a picture that is read at all has its shape.
            if let Ok(found) = picture::read(&path, 1 << 20) {
                assert_eq!((found.rows, found.cols), (picture.rows, picture.cols), "byte {at}");
            }
        }
    }
}

#[test]
fn a_header_that_claims_too_much_is_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.png");
    let encoder = png::Encoder::new(fs::File::create(&path).unwrap(), 0x7fff_ffff, 0x7fff_ffff);
    let mut writer = encoder.write_header().unwrap();
    writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9c, 0, 0]).unwrap();
    drop(writer);
    let error = picture::read(&path, SAMPLES_MAX).unwrap_err();
    assert!(matches!(error, PictureError::TooLarge { .. }), "{error}");
    picture::write(&path, &sample(3, false)).unwrap();
    let error = picture::read(&path, 5 * 7 * 3 - 1).unwrap_err();
    assert!(matches!(error, PictureError::TooLarge { planes: 3, .. }), "{error}");
    picture::read(&path, 5 * 7 * 3).unwrap();
}

/// A file with one more chunk of so many bytes behind its header.
fn with_chunk(content: &[u8], name: &[u8; 4], bytes: usize) -> Vec<u8> {
    let header_end = 8 + 8 + 13 + 4;
    let chunk = [&(bytes as u32).to_be_bytes(), &name[..], &vec![0; bytes], &[0; 4]].concat();
    [&content[..header_end], &chunk, &content[header_end..]].concat()
}

/// However much a camera has to say: the decoder would hold all of it, and refuse more than it may.
#[test]
fn what_no_picture_needs_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.png");
    encode(&path, 3, 2, ColorType::Grayscale, BitDepth::Eight, &[1, 2, 3, 4, 5, 6]);
    let (content, plain) = (fs::read(&path).unwrap(), picture::read(&path, SAMPLES_MAX).unwrap());
    fs::write(&path, with_chunk(&content, b"eXIf", 100 << 20)).unwrap();
    assert_eq!(picture::read(&path, SAMPLES_MAX).unwrap(), plain);
    fs::write(&path, with_chunk(&content, b"PLTE", 3000)).unwrap();
    let refused = picture::read(&path, SAMPLES_MAX).unwrap_err().to_string();
    assert!(refused.contains("chunk PLTE has 3000 bytes"), "{refused}");
    fs::write(&path, with_chunk(&content, b"eXIf", 5000).split_at(60).0).unwrap();
    let refused = picture::read(&path, SAMPLES_MAX).unwrap_err().to_string();
    assert!(refused.contains("ends too early"), "{refused}");
}

#[test]
fn what_cannot_be_written_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.png");
    let mut picture = sample(3, false);
    picture.planes[1].pop();
    assert!(matches!(picture::write(&path, &picture), Err(PictureError::Planes { .. })));
    let none = Picture { rows: 0, cols: 3, planes: vec![vec![]], alpha: None };
    assert!(matches!(picture::write(&path, &none), Err(PictureError::Planes { .. })));
    let missing = folder.path().join("nowhere").join("p.png");
    let error = picture::write(&missing, &sample(1, false)).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert!(picture::write(folder.path(), &sample(1, false)).is_err(), "a folder is no file");
    assert!(names(folder.path()).is_empty());
    let error = picture::read(&path, SAMPLES_MAX).unwrap_err();
    assert!(matches!(error, PictureError::Io { action: "open", .. }), "{error}");
}
