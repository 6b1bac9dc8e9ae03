//! The STM32F42x and F43x with two megabytes of flash: bank 2 begins at 0x0810_0000 with four sectors
//! of 16 KiB and one of 64 KiB; the seven of 128 KiB behind them are for cells.

use bellwether::shell::ResetCause;
use embassy_stm32::pac;
use embassy_stm32::pac::gpio::vals::{Moder, Pupdr};
use embassy_time::Duration;

use crate::flash::{Controller, FlashError};

const BANK_2: u32 = 0x0810_0000;
/// The first sector of 128 KiB, by its place and by its number in the control register.
const LARGE: u32 = BANK_2 + (128 << 10);
const LARGE_NUMBER: u8 = 0b1_0101;

/// The one flash controller.
pub struct FlashF4(());

impl FlashF4 {
    /// Call once, after the clocks are set and before anything of the second bank is read.
    pub fn new() -> Self {
        // Before revision 3 of the chip, reads of the second bank go wrong when pin PA12 moves (errata
        // sheet, 2.2.11). It is held low for ever: a board that needs it as D+ of its USB needs a later
        // chip.
        let (pin, port) = (12, pac::GPIOA);
        port.bsrr().write(|level| level.set_br(pin, true));
        port.pupdr().modify(|pull| pull.set_pupdr(pin, Pupdr::PULL_DOWN));
        port.moder().modify(|mode| mode.set_moder(pin, Moder::OUTPUT));
        // Code may be cached and fetched ahead: it never changes. What cells hold must not be.
        pac::FLASH.acr().modify(|access| {
            access.set_prften(true);
            access.set_icen(true);
        });
        Self(())
    }

    fn unlock(&self) {
        if pac::FLASH.cr().read().lock() {
            pac::FLASH.keyr().write_value(0x4567_0123);
            pac::FLASH.keyr().write_value(0xcdef_89ab);
        }
        // Errors of before would refuse what comes: each flag is cleared by writing it.
        pac::FLASH.sr().modify(|_| {});
    }
}

impl Default for FlashF4 {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for FlashF4 {
    const WORD_BYTES: usize = 4;
    const SECTOR_BYTES: usize = 128 << 10;
    const ERASE_STEP: Duration = Duration::from_millis(10);
    const ERASE_LIMIT: Duration = Duration::from_secs(8);

    fn is_busy(&self) -> bool {
        pac::FLASH.sr().read().bsy()
    }

    fn start_erase(&mut self, address: u32) {
        self.unlock();
        let number = LARGE_NUMBER + (address.saturating_sub(LARGE) >> 17) as u8;
        pac::FLASH.cr().write(|control| {
            control.set_ser(true);
            control.set_snb(number);
            control.set_psize(pac::flash::vals::Psize::PSIZE32);
        });
        pac::FLASH.cr().modify(|control| control.set_strt(true));
        cortex_m::asm::dsb();
    }

    fn start_program(&mut self, address: u32, word: &[u8]) {
        self.unlock();
        pac::FLASH.cr().write(|control| {
            control.set_pg(true);
            control.set_psize(pac::flash::vals::Psize::PSIZE32);
        });
        let Ok(word) = word.try_into() else { return };
        // SAFETY: the adapter has checked that the word lies in the cells, which hold nothing that the
        // compiler knows of.
        unsafe { core::ptr::write_volatile(address as *mut u32, u32::from_le_bytes(word)) };
        cortex_m::asm::dsb();
    }

    fn finish(&mut self) -> Result<(), FlashError> {
        let status = pac::FLASH.sr().read();
        pac::FLASH.cr().write(|control| control.set_lock(true));
        // The cache of data is off after a reset and stays off: nothing stale can be read.
        let refused = status.operr() || status.wrperr() || status.pgaerr();
        if refused || status.pgperr() || status.pgserr() {
            return Err(FlashError::Refused);
        }
        Ok(())
    }

    fn read(&mut self, address: u32, bytes: &mut [u8]) -> bool {
        for (at, byte) in (address..).zip(bytes) {
            // SAFETY: the adapter has checked that these bytes lie in the cells; volatile, because the
            // controller changes them.
            *byte = unsafe { core::ptr::read_volatile(at as *const u8) };
        }
        // This flash has no check bits; what a power cut has torn is found by its checksum.
        true
    }
}

/// What the chip knows about the reset that it comes from; forgotten then. A reset by software has left
/// its cause in memory, every other one is as good as new power.
pub fn reset_cause() -> Option<ResetCause> {
    let flags = pac::RCC.csr().read();
    pac::RCC.csr().modify(|register| register.set_rmvf(true));
    (flags.wdgrstf() || flags.wwdgrstf()).then_some(ResetCause::Watchdog)
}
