//! Values that keep a cache line to themselves.

use std::ops::{Deref, DerefMut};

/// A value on its own pair of cache lines: 128 bytes, because current x86-64 processors fetch lines of 64 bytes in
/// pairs, and some ARM and POWER processors have lines of 128.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
