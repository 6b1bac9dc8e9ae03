//! Which sequence numbers of a boot are used up, as in the anti-replay windows of IPsec and DTLS.

/// How many numbers, from the highest downwards, are told apart.
pub(super) const NUMBERS: u32 = u64::BITS;

/// Each number counts once, in whatever order they come; what lies too far back counts no more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Bit k: whether `highest - k` is used up.
    used: u64,
    highest: u32,
}

impl Window {
    /// Nothing is used up. Numbers begin with 1.
    pub const UNUSED: Self = Self { used: 1, highest: 0 };

    /// Nothing up to this number counts any more, heard or not.
    pub const fn closed_up_to(highest: u32) -> Self {
        Self { used: u64::MAX, highest }
    }

    pub fn is_used(&self, number: u32) -> bool {
        match self.highest.checked_sub(number) {
            None => false,
            Some(back) => back >= NUMBERS || self.used & 1 << back != 0,
        }
    }

    pub fn use_up(&mut self, number: u32) {
        if let Some(ahead) = number.checked_sub(self.highest) {
            self.used = self.used.checked_shl(ahead).unwrap_or(0);
            self.highest = number;
        }
        let back = self.highest - number;
        self.used |= 1u64.checked_shl(back).unwrap_or(0);
    }
}
