//! Four single-precision numbers side by side.
//!
//! Compilers turn these loops into single instructions of every processor that has vectors of four; no instruction set
//! is chosen here, and every operation is rounded once, so the bits are the same everywhere.

use std::ops::{Add, AddAssign, Mul};

/// Numbers of a [`Quad`].
pub(super) const LANES: usize = 4;

/// Four numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(16))]
pub(super) struct Quad(pub(super) [f32; LANES]);

impl Quad {
    pub(super) const ZERO: Quad = Quad([0.0; LANES]);

    #[inline(always)]
    pub(super) fn splat(value: f32) -> Self {
        Quad([value; LANES])
    }

    /// Every number one lane up; `first` comes in.
    #[inline(always)]
    pub(super) fn up(self, first: f32) -> Self {
        let [a, b, c, _] = self.0;
        Quad([first, a, b, c])
    }

    /// Every number one lane down; zero comes in.
    #[inline(always)]
    pub(super) fn down(self) -> Self {
        let [_, b, c, d] = self.0;
        Quad([b, c, d, 0.0])
    }

    /// (a + b) + (c + d).
    #[inline(always)]
    pub(super) fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        (a + b) + (c + d)
    }

    /// The larger of each pair.
    #[inline(always)]
    pub(super) fn max(self, other: Self) -> Self {
        Quad(std::array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
    }

    /// These numbers where `gate` is positive, 0 elsewhere.
    #[inline(always)]
    pub(super) fn where_positive(self, gate: Self) -> Self {
        Quad(std::array::from_fn(|i| if gate.0[i] > 0.0 { self.0[i] } else { 0.0 }))
    }
}

impl Add for Quad {
    type Output = Quad;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Quad(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl AddAssign for Quad {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul for Quad {
    type Output = Quad;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Quad(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }
}
