#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway::fuzz::transcription_form(data));
