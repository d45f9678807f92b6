//! Pictures by which decoders are compared.

/// Planes of a picture with edges that move and are no multiple of anything.
pub(crate) fn planes(width: usize, height: usize, number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in [1, 2, 2] {
        for y in 0..height / part {
            for x in 0..width / part {
                let (a, b) = (x * part + 3 * number, y * part + number);
                out.push(((a * a / 37 + b * 3) % 160) as u8 + if (a / 11 + b / 13) % 3 == 0 { 60 } else { 10 });
            }
        }
    }
    out
}
