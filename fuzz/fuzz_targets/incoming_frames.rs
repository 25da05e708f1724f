#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway::fuzz::incoming_frames(data));
