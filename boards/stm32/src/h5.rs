//! The STM32H5 with two megabytes of flash: bank 2 begins at 0x0810_0000, its sectors are of 8 KiB, and
//! 16 bytes with their check bits are programmed at once.
//!
//! A word whose program was cut by a loss of power may have wrong check bits. Reading it raises an NMI.
//! The handler here notes it, the read ends with whatever it got, and the adapter makes a bad word of it.
//! An NMI that no read of cells has caused ends the boot.

use core::sync::atomic::{AtomicBool, Ordering};

use bellwether::shell::ResetCause;
use bellwether_board::retained;
use embassy_stm32::pac;
use embassy_stm32::pac::flash::vals::NscrBksel;
use embassy_time::Duration;

use crate::flash::{Controller, FlashError};

const BANK_2: u32 = 0x0810_0000;

/// A read of cells is under way: what the chip finds damaged is theirs.
static READING: AtomicBool = AtomicBool::new(false);
static DAMAGED: AtomicBool = AtomicBool::new(false);

/// The one flash controller.
pub struct FlashH5(());

impl FlashH5 {
    /// Call once, when the clocks are set: setting them turns the prefetch off.
    pub fn new() -> Self {
        // Code is fetched ahead. There is a cache, too; it is left off, for it would keep what cells held.
        pac::FLASH.acr().modify(|access| access.set_prften(true));
        Self(())
    }

    fn unlock(&self) {
        if pac::FLASH.nscr().read().lock() {
            pac::FLASH.nskeyr().write_value(0x4567_0123);
            pac::FLASH.nskeyr().write_value(0xcdef_89ab);
        }
        self.clear();
    }

    /// Errors of before would refuse what comes.
    fn clear(&self) {
        pac::FLASH.nsccr().write(|clear| {
            clear.set_clr_eop(true);
            clear.set_clr_wrperr(true);
            clear.set_clr_pgserr(true);
            clear.set_clr_strberr(true);
            clear.set_clr_incerr(true);
        });
    }
}

impl Default for FlashH5 {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for FlashH5 {
    const WORD_BYTES: usize = 16;
    const SECTOR_BYTES: usize = 8 << 10;
    const ERASE_STEP: Duration = Duration::from_millis(1);
    const ERASE_LIMIT: Duration = Duration::from_millis(50);

    fn is_busy(&self) -> bool {
        let status = pac::FLASH.nssr().read();
        status.bsy() || status.dbne()
    }

    fn start_erase(&mut self, address: u32) {
        self.unlock();
        pac::FLASH.nscr().write(|control| {
            control.set_ser(true);
            control.set_bksel(NscrBksel::B_0X1);
            control.set_snb((address.saturating_sub(BANK_2) >> 13) as u8);
        });
        pac::FLASH.nscr().modify(|control| control.set_strt(true));
        cortex_m::asm::dsb();
    }

    fn start_program(&mut self, address: u32, word: &[u8]) {
        self.unlock();
        pac::FLASH.nscr().write(|control| control.set_pg(true));
        cortex_m::asm::dsb();
        for (at, part) in (address..).step_by(4).zip(word.as_chunks::<4>().0) {
            // SAFETY: the adapter has checked that the word lies in the cells, which hold nothing that
            // the compiler knows of. The controller collects the four parts and programs them at once.
            unsafe { core::ptr::write_volatile(at as *mut u32, u32::from_le_bytes(*part)) };
        }
        cortex_m::asm::dsb();
    }

    fn finish(&mut self) -> Result<(), FlashError> {
        let status = pac::FLASH.nssr().read();
        pac::FLASH.nscr().write(|control| control.set_lock(true));
        let refused = status.wrperr() || status.pgserr();
        if refused || status.strberr() || status.incerr() {
            return Err(FlashError::Refused);
        }
        Ok(())
    }

    fn read(&mut self, address: u32, bytes: &mut [u8]) -> bool {
        DAMAGED.store(false, Ordering::Relaxed);
        READING.store(true, Ordering::SeqCst);
        for (at, byte) in (address..).zip(bytes) {
            // SAFETY: the adapter has checked that these bytes lie in the cells; volatile, because the
            // controller changes them.
            *byte = unsafe { core::ptr::read_volatile(at as *const u8) };
        }
        // The NMI of the last read must have come before its note is looked at.
        cortex_m::asm::dsb();
        cortex_m::asm::isb();
        READING.store(false, Ordering::SeqCst);
        !DAMAGED.load(Ordering::Relaxed)
    }
}

// SAFETY: the handler touches two flags and a register of its own, and shares nothing else.
#[cortex_m_rt::exception]
unsafe fn NonMaskableInt() {
    if pac::FLASH.eccdetr().read().eccd() && READING.load(Ordering::SeqCst) {
        // The flag is cleared by writing it.
        pac::FLASH.eccdetr().modify(|found| found.set_eccd(true));
        DAMAGED.store(true, Ordering::Relaxed);
        return;
    }
    // Damaged code, or a clock that has stopped.
    retained::reset(ResetCause::Panic)
}

/// What the chip knows about the reset that it comes from; forgotten then. A reset by software has left
/// its cause in memory, every other one is as good as new power.
pub fn reset_cause() -> Option<ResetCause> {
    let flags = pac::RCC.rsr().read();
    pac::RCC.rsr().modify(|register| register.set_rmvf(true));
    (flags.iwdgrstf() || flags.wwdgrstf()).then_some(ResetCause::Watchdog)
}
