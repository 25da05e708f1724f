#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway::fuzz::binary_header(data));
