//! Lines, whichever system wrote them.

/// The lines of a file without their ends (`\n`, `\r\n` or `\r`), numbered from 1.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> + Clone {
    let old_mac = !bytes.contains(&b'\n');
    let lines = bytes.split(move |&b| b == if old_mac { b'\r' } else { b'\n' });
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).enumerate().map(|(i, line)| (i + 1, line))
}
