//! The types of array elements that files hold.

/// The type of one array element, stored little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Unsigned byte.
    U8,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Complex number of two `F32`, real part first.
    C64,
}

impl ElementType {
    /// Every element type.
    pub const ALL: [ElementType; 4] = [ElementType::U8, ElementType::F32, ElementType::F64, ElementType::C64];

    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            ElementType::U8 => 1,
            ElementType::F32 => 4,
            ElementType::F64 | ElementType::C64 => 8,
        }
    }

    /// The name that people read: `uint8`, `float32`, `float64`, `complex64`.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::U8 => "uint8",
            ElementType::F32 => "float32",
            ElementType::F64 => "float64",
            ElementType::C64 => "complex64",
        }
    }

    /// The NumPy type string, as it stands in the `descr` of a .npy header.
    pub const fn descr(self) -> &'static str {
        match self {
            ElementType::U8 => "|u1",
            ElementType::F32 => "<f4",
            ElementType::F64 => "<f8",
            ElementType::C64 => "<c8",
        }
    }
}

impl std::fmt::Display for ElementType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
