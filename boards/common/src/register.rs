//! Registers of chips without a peripheral access crate.

/// One 32-bit register.
#[derive(Clone, Copy)]
pub struct Register(usize);

impl Register {
    /// # Safety
    /// The address is that of a register of this chip that may be read at any time. Each driver writes
    /// only its own registers, and only what the chip's manual allows.
    #[must_use]
    pub const unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    pub fn read(self) -> u32 {
        // SAFETY: by the promise of `at`.
        unsafe { core::ptr::read_volatile(self.0 as *const u32) }
    }

    pub fn write(self, value: u32) {
        // SAFETY: as above. Addresses for DMA are handed over by the drivers, see there.
        unsafe { core::ptr::write_volatile(self.0 as *mut u32, value) }
    }
}
