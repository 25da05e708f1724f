//! NVIDIA GPUs of this machine. The driver is looked for at run time: without one there is an answer, never a panic.

use std::panic::catch_unwind;

use cudarc::driver::{DriverError, result, sys};

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// What its maker calls it.
    pub name: String,
    /// Its memory, in bytes.
    pub memory_bytes: usize,
}

/// Why the GPUs are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// The driver's library is not installed.
    #[error("no NVIDIA driver found")]
    NoDriver,
    /// The driver refuses, or is too old.
    #[error("the NVIDIA driver does not answer: {0}")]
    Driver(String),
}

/// All GPUs that the driver shows.
///
/// # Errors
/// See [`GpuError`].
pub fn gpus() -> Result<Vec<Gpu>, GpuError> {
    if !driver_is_present() {
        return Err(GpuError::NoDriver);
    }
    // The binding panics on a driver that lacks a function.
    match catch_unwind(ask) {
        Ok(answer) => answer.map_err(|e| GpuError::Driver(e.to_string())),
        Err(_) => Err(GpuError::Driver("it lacks a function".to_owned())),
    }
}

#[expect(unsafe_code, reason = "the binding marks opening the driver's library as unsafe")]
fn driver_is_present() -> bool {
    // SAFETY: opens the library by its well-known name; its initialisers are the driver's own.
    unsafe { sys::is_culib_present() }
}

fn ask() -> Result<Vec<Gpu>, DriverError> {
    result::init()?;
    (0..result::device::get_count()?).map(gpu).collect()
}

#[expect(unsafe_code, reason = "the binding wants to be told that the device is one")]
fn gpu(ordinal: i32) -> Result<Gpu, DriverError> {
    let device = result::device::get(ordinal)?;
    // SAFETY: the device comes from `get`.
    let memory_bytes = unsafe { result::device::total_mem(device) }?;
    Ok(Gpu { name: result::device::get_name(device)?, memory_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_driver_is_told_so() {
        match gpus() {
            Ok(gpus) => assert!(gpus.iter().all(|g| !g.name.is_empty() && g.memory_bytes > 0)),
            Err(error) => assert!(error.to_string().contains("NVIDIA driver"), "{error}"),
        }
    }
}
