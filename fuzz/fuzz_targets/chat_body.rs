#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway::fuzz::chat_body(data));
