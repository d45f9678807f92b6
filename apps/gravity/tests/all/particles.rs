//! Files of particles: what is read, what is refused and how it is named; the parser takes any bytes.

use multigrain_gravity::particles::{NAMES, parse, read};
use multigrain_gravity::plummer::plummer;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn write(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.bytes());
    file.extend(data);
    file
}

#[test]
fn columns_come_in_any_order() {
    let directory = tempfile::tempdir().unwrap();
    let text = "# two bodies\n\nvx, vy,vz,MASS,z,y,x\r\n1,2,3, 4 ,7,6,5\n\n#\n-1,0,1e-3,2,0,1,.5";
    let found = read(&write(directory.path(), "a.csv", text), 0.0).unwrap();
    assert_eq!(found.rows, [[4.0, 5.0, 6.0, 7.0, 1.0, 2.0, 3.0], [2.0, 0.5, 1.0, 0.0, -1.0, 0.0, 1e-3]]);
}

#[test]
fn wrong_texts_are_refused_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let head = "mass,x,y,z,vx,vy,vz\n";
    let cases: [(String, f64, &[&str]); 15] = [
        (String::new(), 0.0, &["a.csv", "empty"]),
        (head.into(), 0.0, &["a.csv", "no particles"]),
        ("mass,x,y,z,vx,vy\n".into(), 0.0, &["line 1", "vz is missing"]),
        ("mass,x,y,z,vx,vy,vz,vz\n".into(), 0.0, &["line 1", "vz is named twice"]),
        ("1,2,3,4,5,6,7\n".into(), 0.0, &["line 1", "\"1\" is no column"]),
        (format!("{head}1,2,3,4,5,6\n"), 0.0, &["line 2", "6 fields, 7 are needed"]),
        (format!("{head}1,2,3,4,5,6,7,8\n"), 0.0, &["line 2", "8 fields"]),
        (format!("{head}1,2,three,4,5,6,7\n"), 0.0, &["line 2", "y = \"three\" is no number"]),
        (format!("{head}\n-1,2,3,4,5,6,7\n"), 0.0, &["line 3", "mass = -1", "not negative"]),
        (format!("{head}1,nan,3,4,5,6,7\n"), 0.0, &["line 2", "x = NaN", "finite"]),
        (format!("{head}1,2,3,4,5,inf,7\n"), 0.0, &["line 2", "vy = inf"]),
        (format!("{head}1,2,3,4,0,0,0\n1,0,0,0,0,0,0\n\n1,2,3,4,5,6,7\n"), 0.0, &["line 5", "line 2", "--softening"]),
        (format!("{head}1,1e13,3,4,5,6,7\n"), 0.0, &["line 2", "x = 1e13", "unit of length"]),
        (format!("{head}1e39,1,3,4,5,6,7\n"), 0.0, &["line 2", "mass = 1e39"]),
        (format!("{head}1e10,0,0,0,0,0,0\n1,1,1,1,0,0,0\n"), 1e-15, &["a.csv", "softening"]),
    ];
    for (text, softening, parts) in cases {
        let error = read(&write(directory.path(), "a.csv", &text), softening).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{text:?}: {error} lacks {part}");
        }
    }
    let error =
        read(&write(directory.path(), "a.csv", b"mass,x,y,z,vx,vy,vz\n\xff\xfe\n"), 0.0).unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("UTF-8"), "{error}");
    // With softening two particles may lie at one place.
    let twins = format!("{head}1,2,3,4,0,0,0\n1,2,3,4,5,6,7\n");
    read(&write(directory.path(), "a.csv", twins), 0.1).unwrap();
    // The two zeros are one place.
    let zeros = format!("{head}1,0,0,0,0,0,0\n1,-0.0,0,0,5,6,7\n");
    assert!(read(&write(directory.path(), "a.csv", zeros), 0.0).is_err());
}

#[test]
fn arrays_of_both_precisions_and_snapshots_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let rows = plummer(5, 3).rows;
    let double: Vec<u8> = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let path = write(directory.path(), "a.npy", npy("<f8", "(5, 7)", &double));
    assert_eq!(read(&path, 0.0).unwrap().rows, rows);
    let single: Vec<u8> = rows.iter().flatten().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    let found = read(&write(directory.path(), "a.npy", npy("<f4", "(5, 7)", &single)), 0.0).unwrap();
    assert!(found.rows.iter().flatten().zip(rows.iter().flatten()).all(|(a, b)| *a == f64::from(*b as f32)));
    let other: Vec<u8> = double.iter().map(|_| 0).collect();
    let two = [other, double].concat();
    let path = write(directory.path(), "a.npy", npy("<f8", "(2, 5, 7)", &two));
    assert_eq!(read(&path, 0.0).unwrap().rows, rows, "the last snapshot is taken");
}

#[test]
fn wrong_arrays_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(Vec<u8>, &str); 6] = [
        (npy("<f8", "(2, 7)", &[0; 111]), "cut off: its array takes 112 bytes, there are 111"),
        (npy("<f8", "(2, 6)", &[0; 96]), "shape [2, 6]; n x 7 is needed"),
        (npy("<f8", "(0, 7)", &[]), "no particles"),
        (npy("|u1", "(2, 7)", &[0; 14]), "uint8"),
        (npy("<f4", "(99999999999, 7)", &[0; 14]), "at most"),
        (b"\x93NUM".to_vec(), "a.npy"),
    ];
    for (content, part) in cases {
        let error = read(&write(directory.path(), "a.npy", content), 0.0).unwrap_err().to_string();
        assert!(error.contains("a.npy") && error.contains(part), "{error} lacks {part}");
    }
    let mut rows = plummer(3, 1).rows;
    rows[2][0] = -1.0;
    let double: Vec<u8> = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    let error = read(&write(directory.path(), "a.npy", npy("<f8", "(3, 7)", &double)), 0.0).unwrap_err().to_string();
    assert!(error.contains("particle 2: mass = -"), "{error}");
    let error = read(&directory.path().join("none.csv"), 0.0).unwrap_err().to_string();
    assert!(error.contains("none.csv"), "{error}");
}

#[test]
fn a_sphere_has_the_units_it_claims() {
    let n = 4000;
    let rows = plummer(n, 5).rows;
    assert_eq!(plummer(n, 5).rows, rows);
    assert_ne!(plummer(n, 6).rows, rows);
    let mass: f64 = rows.iter().map(|r| r[0]).sum();
    assert!((mass - 1.0).abs() < 1e-12);
    for column in 1..7 {
        assert!(rows.iter().map(|r| r[0] * r[column]).sum::<f64>().abs() < 1e-12, "the centre of mass rests");
    }
    let kinetic: f64 = rows.iter().map(|r| 0.5 * r[0] * (r[4] * r[4] + r[5] * r[5] + r[6] * r[6])).sum();
    let mut potential = 0.0;
    for i in 0..n {
        for j in 0..i {
            let r2: f64 = (1..4).map(|c| (rows[i][c] - rows[j][c]).powi(2)).sum();
            potential -= rows[i][0] * rows[j][0] / r2.sqrt();
        }
    }
    // Of 4000 particles, sums are right to some percent.
    assert!((kinetic + potential + 0.25).abs() < 0.02, "energy {}", kinetic + potential);
    assert!((2.0 * kinetic + potential).abs() < 0.02, "virial {kinetic} {potential}");
    // Half of the mass lies inside of 1.305 scale lengths of 3 pi / 16.
    let inside = rows.iter().filter(|r| (r[1] * r[1] + r[2] * r[2] + r[3] * r[3]).sqrt() < 0.769).count();
    assert!((inside as f64 / n as f64 - 0.5).abs() < 0.05, "{inside}");
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
        let _ = parse(&[b"mass,x,y,z,vx,vy,vz\n".as_slice(), &bytes].concat());
    }

    #[test]
    fn damaged_texts_are_parsed_or_refused_with_a_line_that_is_there(
        at in 0usize..400, byte in any::<u8>(), cut in 0usize..400,
    ) {
        let mut text = b"mass,x,y,z,vx,vy,vz\n1,2,3,4,5,6,7\n.5,-1e3,0.0,+3,1E-2,7,8\n".repeat(2);
        let at = at % text.len();
        text[at] = byte;
        text.truncate(cut.max(at + 1));
        let lines = text.iter().filter(|&&b| b == b'\n').count() + 1;
        if let Err(error) = parse(&text) {
            prop_assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{:?}", error);
        }
    }

    #[test]
    fn what_was_written_is_read(rows in proptest::collection::vec(proptest::array::uniform7(-1e9f64..1e9), 1..20), shift in 0usize..7) {
        let order: Vec<usize> = (0..7).map(|c| (c * 3 + shift) % 7).collect();
        let mut text = order.iter().map(|&c| NAMES[c]).collect::<Vec<_>>().join(",") + "\n";
        for row in &rows {
            text += &(order.iter().map(|&c| row[c].to_string()).collect::<Vec<_>>().join(", ") + "\n");
        }
        let (found, lines) = parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&found.rows, &rows);
        prop_assert_eq!(lines, (2..rows.len() + 2).collect::<Vec<_>>());
    }
}
