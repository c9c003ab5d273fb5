// SPDX-License-Identifier: Apache-2.0
//! Bulk data from inside the guest's kernel: `kernel/drivers/load.c`.

use std::fs::File;
use std::io::{Result, Write};
use std::os::fd::{AsRawFd, BorrowedFd};

const DRIVER: &str = "/proc/hourglass/load";

/// Lets the kernel send over a connection for as long as it lives; the error is why it ended.
pub fn send_forever(fd: BorrowedFd) -> Result<()> {
    let mut driver = File::options().write(true).open(DRIVER)?;
    driver.write_all(format!("send {}", fd.as_raw_fd()).as_bytes())
}
