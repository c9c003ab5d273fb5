// SPDX-License-Identifier: Apache-2.0
//! The texts of errors: the system's texts, and the last lines of a program.

use std::io;

use nix::errno::Errno;

/// Returns the system's text of an error, without the number that the standard library adds.
pub fn error_text(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), errno_text)
}

pub fn errno_text(errno: i32) -> String {
    Errno::from_raw(errno).desc().to_owned()
}

/// Returns the last lines of a program, for a message.
pub fn quoted(output: &str) -> String {
    if output.is_empty() {
        "it printed nothing".to_owned()
    } else {
        format!("its last output: {}", output.lines().collect::<Vec<_>>().join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_the_words_of_the_system() {
        assert_eq!(error_text(&io::Error::from_raw_os_error(libc::EACCES)), "Permission denied");
        assert_eq!(error_text(&io::Error::from(io::ErrorKind::NotFound)), "entity not found");
    }

    #[test]
    fn last_lines_are_quoted() {
        assert_eq!(quoted("one\ntwo"), "its last output: one | two");
        assert_eq!(quoted(""), "it printed nothing");
    }
}
