//! Element types of arrays.

use std::fmt;

/// The type of an array's elements, as stored in memory and in files (little endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// Unsigned byte.
    U8,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Complex single precision: real part, imaginary part (NumPy's complex64).
    C64,
}

impl ElementType {
    /// Size of one element in bytes.
    pub const fn size_bytes(self) -> u64 {
        match self {
            ElementType::U8 => 1,
            ElementType::F32 => 4,
            ElementType::F64 | ElementType::C64 => 8,
        }
    }

    /// The name NumPy gives to this type.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::U8 => "uint8",
            ElementType::F32 => "float32",
            ElementType::F64 => "float64",
            ElementType::C64 => "complex64",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A complex number in single precision, laid out as in a complex64 file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex32 {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that can be an element of an array: any bit pattern of its size is a valid value.
pub trait Element: sealed::Sealed + Copy + Send + Sync + Default + fmt::Debug + 'static {
    /// The element type this Rust type stands for.
    const TYPE: ElementType;
}

macro_rules! element {
    ($($t:ty => $e:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t { const TYPE: ElementType = ElementType::$e; }
    )*};
}
element!(u8 => U8, f32 => F32, f64 => F64, Complex32 => C64);
