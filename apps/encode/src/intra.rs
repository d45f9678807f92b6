//! Prediction from the samples around a block (8.3 of the standard).

use crate::samples::Samples;

/// What lies around a macroblock: rows above and columns on the left, as they were before any smoothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around<const N: usize> {
    /// The row above.
    pub above: Option<[u8; N]>,
    /// The column on the left.
    pub left: Option<[u8; N]>,
    /// The sample above on the left, if both are there.
    pub corner: u8,
}

impl Around<16> {
    /// The mean of what is there.
    #[inline(always)]
    pub fn mean(&self) -> u8 {
        let value = match (self.above, self.left) {
            (Some(above), Some(left)) => (sum(&above) + sum(&left) + 16) >> 5,
            (Some(one), None) | (None, Some(one)) => (sum(&one) + 8) >> 4,
            (None, None) => 128,
        };
        value as u8
    }
}

/// Modes of a whole macroblock's luma (Table 8-4); those of chroma have other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The row above, downwards.
    Vertical,
    /// The column on the left, to the right.
    Horizontal,
    /// A mean.
    Dc,
    /// A slope.
    Plane,
}

impl Mode {
    /// All, as luma numbers them.
    pub const ALL: [Mode; 4] = [Mode::Vertical, Mode::Horizontal, Mode::Dc, Mode::Plane];

    /// The number for luma.
    pub fn luma_number(self) -> u32 {
        self as u32
    }

    /// The number for chroma (Table 8-5).
    pub fn chroma_number(self) -> u32 {
        match self {
            Mode::Dc => 0,
            Mode::Horizontal => 1,
            Mode::Vertical => 2,
            Mode::Plane => 3,
        }
    }

    /// Whether what it needs is there.
    pub fn is_possible<const N: usize>(self, around: &Around<N>) -> bool {
        match self {
            Mode::Vertical => around.above.is_some(),
            Mode::Horizontal => around.left.is_some(),
            Mode::Dc => true,
            Mode::Plane => around.above.is_some() && around.left.is_some(),
        }
    }
}

#[inline(always)]
fn sum(values: &[u8]) -> u32 {
    values.iter().map(|value| u32::from(*value)).sum()
}

/// Fills `N` columns from `x` on of the first `N` rows by a slope (8.3.3.4, 8.3.4.4).
#[inline(always)]
fn slope<const N: usize>(above: &[u8; N], left: &[u8; N], corner: u8, out: &mut Samples, x: usize) {
    let half = N / 2;
    let gradient = |line: &[u8; N]| -> i32 {
        let difference = |far: u8, near: u8| i32::from(far) - i32::from(near);
        let inner: i32 = (1..half).map(|i| i as i32 * difference(line[half + i - 1], line[half - i - 1])).sum();
        inner + half as i32 * difference(line[N - 1], corner)
    };
    let scaled = |value: i32| if N == 16 { (5 * value + 32) >> 6 } else { (34 * value + 32) >> 6 };
    let (across, down) = (scaled(gradient(above)), scaled(gradient(left)));
    let base = 16 * (i32::from(above[N - 1]) + i32::from(left[N - 1])) + 16;
    let middle = half as i32 - 1;
    for (y, row) in out.0.as_chunks_mut::<16>().0.iter_mut().take(N).enumerate() {
        for (i, value) in row[x..x + N].iter_mut().enumerate() {
            *value = ((base + across * (i as i32 - middle) + down * (y as i32 - middle)) >> 5).clamp(0, 255) as u8;
        }
    }
}

/// Luma of a macroblock; the mode is possible. Inlined into the kernels ([`crate::kernel::Kernels`]).
#[inline(always)]
pub fn luma(mode: Mode, around: &Around<16>, out: &mut Samples) {
    let (above, left) = (around.above.unwrap_or_default(), around.left.unwrap_or_default());
    let rows = out.0.as_chunks_mut::<16>().0.iter_mut();
    match mode {
        Mode::Vertical => rows.for_each(|row| *row = above),
        Mode::Horizontal => rows.zip(left).for_each(|(row, value)| row.fill(value)),
        Mode::Plane => slope(&above, &left, around.corner, out, 0),
        Mode::Dc => out.0.fill(around.mean()),
    }
}

/// Chroma of a macroblock, 8 columns from `x` on (0 for Cb, 8 for Cr); the mode is possible. Inlined as above.
#[inline(always)]
pub fn chroma(mode: Mode, around: &Around<8>, out: &mut Samples, x: usize) {
    let (above, left) = (around.above.unwrap_or_default(), around.left.unwrap_or_default());
    let rows = out.0.as_chunks_mut::<16>().0.iter_mut().take(8);
    match mode {
        Mode::Vertical => rows.for_each(|row| row[x..x + 8].copy_from_slice(&above)),
        Mode::Horizontal => rows.zip(left).for_each(|(row, value)| row[x..x + 8].fill(value)),
        Mode::Plane => slope(&above, &left, around.corner, out, x),
        Mode::Dc => {
            for block in 0..4 {
                let (bx, by) = (block % 2 * 4, block / 2 * 4);
                let up = around.above.map(|_| sum(&above[bx..bx + 4]));
                let side = around.left.map(|_| sum(&left[by..by + 4]));
                // Blocks off the diagonal prefer the side that they touch (8.3.4.1 to 8.3.4.3).
                let value = match (up, side, bx > 0, by > 0) {
                    (Some(up), Some(_), true, false) => (up + 2) >> 2,
                    (Some(_), Some(side), false, true) => (side + 2) >> 2,
                    (Some(up), Some(side), ..) => (up + side + 4) >> 3,
                    (Some(one), None, ..) | (None, Some(one), ..) => (one + 2) >> 2,
                    (None, None, ..) => 128,
                };
                for y in by..by + 4 {
                    out.0[y * 16 + x + bx..][..4].fill(value as u8);
                }
            }
        }
    }
}

/// What lies around a block of 4 x 4: thirteen samples in one line, from below on the left over the corner to above on the
/// right, and three that are not used. Those that are not there are anything.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// `[3 - y]` the column on the left, `[4]` the corner, `[5 + x]` the row above, which is as long as two blocks.
    pub samples: [u8; 16],
    /// Whether the row above is there.
    pub has_above: bool,
    /// Whether the column on the left is there.
    pub has_left: bool,
}

/// Names of the modes of 4 x 4 blocks by number (Table 8-2): vertical, horizontal, mean, and along diagonals.
pub const BLOCK_MODES: u8 = 9;

/// The mode of a mean.
pub const BLOCK_DC: u8 = 2;

impl Line {
    /// Whether what a mode needs is there.
    pub fn allows(&self, mode: u8) -> bool {
        match mode {
            0 | 3 | 7 => self.has_above,
            1 | 8 => self.has_left,
            2 => true,
            _ => self.has_above && self.has_left,
        }
    }

    /// The mean of what is there.
    #[inline]
    pub fn mean(&self) -> u8 {
        let (left, above) = (sum(&self.samples[..4]), sum(&self.samples[5..9]));
        let mean = match (self.has_above, self.has_left) {
            (true, true) => (left + above + 4) >> 3,
            (true, false) => (above + 2) >> 2,
            (false, true) => (left + 2) >> 2,
            (false, false) => 128,
        };
        mean as u8
    }

    /// What all modes are made of: the samples, and of neighbours on this line the means of two and of three.
    pub fn ingredients(&self) -> [[u8; 16]; 3] {
        let s = self.samples.map(u16::from);
        let mut parts = [self.samples, [0; 16], [0; 16]];
        for i in 0..12 {
            parts[1][i] = ((s[i] + s[i + 1] + 1) >> 1) as u8;
        }
        // At the ends, the last sample stands for what would be beyond.
        for i in 0..13 {
            parts[2][i] = ((s[i.saturating_sub(1)] + 2 * s[i] + s[(i + 1).min(12)] + 2) >> 2) as u8;
        }
        parts[0][usize::from(MEAN)] = self.mean();
        parts
    }
}

/// Where [ingredients](Line::ingredients) have the mean, means of two, and means of three.
pub const MEAN: u8 = 13;
/// See above.
pub const TWO: u8 = 16;
/// See above.
pub const THREE: u8 = 32;

/// Where in [ingredients](Line::ingredients) the samples of each place (8.3.1.2) are, mode by mode.
pub const PICKS: [[u8; 16]; 16] = {
    let mut picks = [[0; 16]; 16];
    let mut place = 0;
    while place < 16 {
        let (x, y) = (place as i8 % 4, place as i8 / 4);
        let by_mode = [
            5 + x,
            3 - y,
            MEAN as i8,
            // Down to the left, down to the right.
            THREE as i8 + 6 + x + y,
            THREE as i8 + 4 + x - y,
            // More down than right.
            match 2 * x - y {
                z @ (0 | 2 | 4 | 6) => TWO as i8 + 4 + z / 2,
                z @ (1 | 3 | 5) => THREE as i8 + 4 + (z + 1) / 2,
                -1 => THREE as i8 + 4,
                _ => THREE as i8 + 5 - y,
            },
            // More right than down.
            match 2 * y - x {
                z @ (0 | 2 | 4 | 6) => TWO as i8 + 3 - z / 2,
                z @ (1 | 3 | 5) => THREE as i8 + 4 - (z + 1) / 2,
                -1 => THREE as i8 + 4,
                _ => THREE as i8 + 3 + x,
            },
            // More down than left.
            if y % 2 == 0 { TWO as i8 + 5 + x + y / 2 } else { THREE as i8 + 6 + x + y / 2 },
            // More right than up.
            match x + 2 * y {
                z @ (0 | 2 | 4) => TWO as i8 + 2 - z / 2,
                z @ (1 | 3 | 5) => THREE as i8 + 2 - z / 2,
                _ => 0,
            },
        ];
        let mut mode = 0;
        while mode < by_mode.len() {
            picks[place][mode] = by_mode[mode] as u8;
            mode += 1;
        }
        place += 1;
    }
    picks
};

/// The prediction of a block by a mode that is possible, row by row.
pub fn block(mode: usize, from: &[[u8; 16]; 3]) -> [u8; 16] {
    PICKS.map(|picks| from.as_flattened()[usize::from(picks[mode])])
}
