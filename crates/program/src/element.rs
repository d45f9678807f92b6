//! Element types of arrays.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The type of an array's elements, as stored in memory and in files (little endian): that of an [`Element`], as a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ElementType(&'static Description);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Description {
    name: &'static str,
    descr: &'static str,
    size_bytes: u64,
    align_bytes: u64,
}

/// Blocks in memory begin at multiples of this at least, so no element may ask for more.
const ALIGN_BYTES_MAX: usize = 64;

impl Description {
    const fn of<T: Element>() -> Description {
        let (descr, size, align) = (T::DESCR.as_bytes(), size_of::<T>(), align_of::<T>());
        assert!(size > 0 && align <= ALIGN_BYTES_MAX, "an element has a size, and is aligned to at most 64 bytes");
        assert!(descr.len() >= 3 && matches!(descr[0], b'<' | b'|'), "NumPy's type string begins with < or |");
        let mut i = 1;
        while i < descr.len() {
            assert!(descr[i].is_ascii_alphanumeric(), "NumPy's type string is of letters and digits");
            i += 1;
        }
        Description { name: T::NAME, descr: T::DESCR, size_bytes: size as u64, align_bytes: align as u64 }
    }
}

impl ElementType {
    /// Signed byte.
    pub const I8: ElementType = ElementType::of::<i8>();
    /// Unsigned byte.
    pub const U8: ElementType = ElementType::of::<u8>();
    /// Signed integer of 16 bits.
    pub const I16: ElementType = ElementType::of::<i16>();
    /// Unsigned integer of 16 bits.
    pub const U16: ElementType = ElementType::of::<u16>();
    /// Signed integer of 32 bits.
    pub const I32: ElementType = ElementType::of::<i32>();
    /// Unsigned integer of 32 bits.
    pub const U32: ElementType = ElementType::of::<u32>();
    /// Signed integer of 64 bits.
    pub const I64: ElementType = ElementType::of::<i64>();
    /// Unsigned integer of 64 bits.
    pub const U64: ElementType = ElementType::of::<u64>();
    /// IEEE 754 single precision.
    pub const F32: ElementType = ElementType::of::<f32>();
    /// IEEE 754 double precision.
    pub const F64: ElementType = ElementType::of::<f64>();
    /// Complex single precision: real part, imaginary part.
    pub const C64: ElementType = ElementType::of::<Complex32>();
    /// Complex double precision.
    pub const C128: ElementType = ElementType::of::<Complex64>();

    /// The types that this crate brings along: those that a file can be found to hold without being told.
    pub const KNOWN: [ElementType; 12] = {
        use ElementType as E;
        [E::I8, E::U8, E::I16, E::U16, E::I32, E::U32, E::I64, E::U64, E::F32, E::F64, E::C64, E::C128]
    };

    /// The type that a Rust type stands for.
    pub const fn of<T: Element>() -> ElementType {
        ElementType(const { &Description::of::<T>() })
    }

    /// Size of one element in bytes.
    pub const fn size_bytes(self) -> u64 {
        self.0.size_bytes
    }

    /// Elements in memory begin at multiples of so many bytes.
    pub const fn align_bytes(self) -> u64 {
        self.0.align_bytes
    }

    /// The name NumPy gives to this type.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// NumPy's type string, as it stands in the header of a .npy file.
    pub const fn descr(self) -> &'static str {
        self.0.descr
    }
}

impl Hash for ElementType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Types that are equal have equal strings, and few types share a name.
        self.0.name.hash(state);
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for ElementType {
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

/// A complex number in double precision, laid out as in a complex128 file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex64 {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

/// A Rust type that can be an element of an array. Others may add theirs:
///
/// ```
/// use multigrain_program::{Element, ElementType};
///
/// /// Half precision, as its bits.
/// #[derive(Clone, Copy, Debug, Default, PartialEq)]
/// #[repr(transparent)]
/// struct Half(u16);
///
/// // SAFETY: all sixteen bits of a u16 belong to its value, and each pattern is one.
/// unsafe impl Element for Half {
///     const NAME: &'static str = "float16";
///     const DESCR: &'static str = "<f2";
/// }
/// assert_eq!((ElementType::of::<Half>().size_bytes(), Half::TYPE.name()), (2, "float16"));
/// ```
///
/// # Safety
/// Any bit pattern of its size is a valid value, and every byte of a value belongs to it: there is no padding. So memory
/// that holds anything can be seen as elements, and elements as bytes. [`TYPE`](Element::TYPE) is left as it is given.
pub unsafe trait Element: Copy + Send + Sync + Default + fmt::Debug + 'static {
    /// The name NumPy gives to the type, or one like it: for messages.
    const NAME: &'static str;
    /// NumPy's type string of what lies in memory, for .npy files: `<` and kind and size, `|` where a byte has no order.
    const DESCR: &'static str;
    /// The element type this Rust type stands for.
    const TYPE: ElementType = ElementType::of::<Self>();

    /// Elements as the bytes that they are.
    fn as_bytes(elements: &[Self]) -> &[u8] {
        // SAFETY: every byte of an element belongs to its value, so all of them are initialised; bytes have no alignment.
        unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
    }

    /// The elements that lie one after the other in some bytes; what is too little for one at the end is left out.
    fn from_bytes(bytes: &[u8]) -> Vec<Self> {
        let mut elements = vec![Self::default(); bytes.len() / size_of::<Self>()];
        // SAFETY: so many bytes lie in both, which do not overlap, and any bytes are elements.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), elements.as_mut_ptr().cast(), size_of_val(&elements[..]));
        }
        elements
    }
}

macro_rules! element {
    ($($t:ty, $name:literal, $descr:literal;)*) => {$(
        // SAFETY: numbers, or two of them without padding, of which each bit pattern is one.
        unsafe impl Element for $t {
            const NAME: &'static str = $name;
            const DESCR: &'static str = $descr;
        }
    )*};
}
element! {
    i8, "int8", "|i1";
    u8, "uint8", "|u1";
    i16, "int16", "<i2";
    u16, "uint16", "<u2";
    i32, "int32", "<i4";
    u32, "uint32", "<u4";
    i64, "int64", "<i8";
    u64, "uint64", "<u8";
    f32, "float32", "<f4";
    f64, "float64", "<f8";
    Complex32, "complex64", "<c8";
    Complex64, "complex128", "<c16";
}

const _: () = assert!(cfg!(target_endian = "little"), "files are little endian, and read without conversion");
