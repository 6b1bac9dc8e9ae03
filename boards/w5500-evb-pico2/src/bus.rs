//! The serial bus to the network chip.
//!
//! A frame of the flock takes 30 to 200 microseconds at 30 MHz. To wait for it costs less than an
//! interrupt and a change of tasks for each of its parts.

use embassy_rp::gpio::Output;
use embassy_rp::peripherals::SPI0;
use embassy_rp::spi::{Blocking, Error, Spi};
use embedded_hal_async::spi::{ErrorType, Operation, SpiDevice};

pub struct Bus {
    pub spi: Spi<'static, SPI0, Blocking>,
    pub select: Output<'static>,
}

impl ErrorType for Bus {
    type Error = Error;
}

impl SpiDevice for Bus {
    /// Cancel safety: never waits.
    async fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), Error> {
        self.select.set_low();
        let done = operations.iter_mut().try_for_each(|operation| match operation {
            Operation::Read(bytes) => self.spi.blocking_read(bytes),
            Operation::Write(bytes) => self.spi.blocking_write(bytes),
            Operation::Transfer(read, write) => self.spi.blocking_transfer(read, write),
            Operation::TransferInPlace(bytes) => self.spi.blocking_transfer_in_place(bytes),
            // The chip asks for none.
            Operation::DelayNs(_) => Ok(()),
        });
        self.select.set_high();
        done
    }
}
