//! Floating point formats of the data path: sign, exponent, fraction, hidden bit; no denormals and no NaN.

/// A binary floating point format `1 + exp_bits + frac_bits` (manual, chapter on number formats).
///
/// Exponent field 0 is zero and exponent field all ones is infinity, whatever the fraction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatFormat {
    /// Width of the exponent field in bits.
    pub exp_bits: u32,
    /// Width of the fraction field in bits.
    pub frac_bits: u32,
}

impl FloatFormat {
    /// `h`: 1-6-9, bias 31.
    pub const HALF: Self = Self { exp_bits: 6, frac_bits: 9 };
    /// `f`: 1-8-23, bias 127.
    pub const SINGLE: Self = Self { exp_bits: 8, frac_bits: 23 };
    /// `d`: 1-11-52, bias 1023.
    pub const DOUBLE: Self = Self { exp_bits: 11, frac_bits: 52 };

    /// The format with these field widths, if the kernels are instantiated for it.
    #[must_use]
    pub fn supported(exp_bits: u32, frac_bits: u32) -> Option<Self> {
        [Self::HALF, Self::SINGLE, Self::DOUBLE].into_iter().find(|f| *f == Self { exp_bits, frac_bits })
    }

    /// Total width in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        1 + self.exp_bits + self.frac_bits
    }

    /// Exponent bias.
    #[must_use]
    pub const fn bias(self) -> u32 {
        (1 << (self.exp_bits - 1)) - 1
    }

    /// Largest exponent field (all ones: infinity).
    #[must_use]
    pub const fn exp_max(self) -> u32 {
        (1 << self.exp_bits) - 1
    }

    /// Mask of the sign bit.
    #[must_use]
    pub const fn sign_mask(self) -> u64 {
        1 << (self.exp_bits + self.frac_bits)
    }

    /// Mask of the fraction field.
    #[must_use]
    pub const fn frac_mask(self) -> u64 {
        (1 << self.frac_bits) - 1
    }

    /// Mask of the exponent field, which is also the bits of +infinity.
    #[must_use]
    pub const fn exp_mask(self) -> u64 {
        (self.exp_max() as u64) << self.frac_bits
    }

    /// Bits of 1.0.
    #[must_use]
    pub const fn one(self) -> u64 {
        (self.bias() as u64) << self.frac_bits
    }

    /// The value as a host double, exact. Exponent field 0 gives a signed zero, all ones a signed infinity.
    #[must_use]
    pub fn to_f64(self, bits: u64) -> f64 {
        let sign = u64::from(bits & self.sign_mask() != 0) << 63;
        let exp = (bits & self.exp_mask()) >> self.frac_bits;
        let magnitude = if exp == 0 {
            0
        } else if exp == u64::from(self.exp_max()) {
            f64::INFINITY.to_bits()
        } else {
            let rebias = u64::from(Self::DOUBLE.bias() - self.bias());
            ((exp + rebias) << 52) | ((bits & self.frac_mask()) << (52 - self.frac_bits))
        };
        f64::from_bits(sign | magnitude)
    }

    /// The value of a block float word as a host double, exact. There is no hidden bit; the first bit of the fraction
    /// counts 1.
    ///
    /// Exponent field 0 gives a signed zero (the value of an extended element depends on its block), all ones a signed
    /// infinity.
    #[must_use]
    pub fn block_to_f64(self, bits: u64) -> f64 {
        let one = self.to_f64(bits & !self.frac_mask());
        if one == 0.0 || one.is_infinite() {
            return one;
        }
        // Both factors are exact, and so is every product with a fraction of at most 52 bits, even below the normal range.
        let fraction = (bits & self.frac_mask()) as f64 / (1u64 << (self.frac_bits - 1)) as f64;
        one * fraction
    }

    /// The bits nearest to a host double, ties to even. Overflow gives infinity, underflow a zero of the same sign. A NaN,
    /// which no format has, gives infinity.
    #[must_use]
    pub fn from_f64(self, value: f64) -> u64 {
        let bits = value.to_bits();
        let sign = (bits >> 63) * self.sign_mask();
        let mag = bits & (u64::MAX >> 1);
        let drop = 52 - self.frac_bits;
        let rounded = if drop == 0 { mag } else { (mag + (1 << (drop - 1)) - 1 + ((mag >> drop) & 1)) >> drop };
        let rebias = u64::from(Self::DOUBLE.bias() - self.bias()) << self.frac_bits;
        let least = rebias + (1 << self.frac_bits);
        let magnitude = if rounded < least { 0 } else { (rounded - rebias).min(self.exp_mask()) };
        sign | magnitude
    }
}
