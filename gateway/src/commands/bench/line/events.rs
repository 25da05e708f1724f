//! What the chunks of a chat completion say: text, sound, that it went wrong. Knows no connection.

use std::collections::VecDeque;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Broken, broken};

/// Between two events.
const END: &[u8] = b"\n\n";
/// What the last one says.
const DONE: &str = "[DONE]";
/// Longest event: some seconds of sound.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// What an event says.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Some text.
    Text,
    /// So many bytes of sound.
    Sound(u64),
    /// It cannot go on, by the code of why.
    Refused(String),
}

/// Events as they come in, cut anywhere.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: Vec<u8>,
    said: VecDeque<Said>,
}

impl Events {
    /// More of them comes.
    ///
    /// # Errors
    /// It is none, or too long.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.bytes.extend_from_slice(bytes);
        while let Some(end) = self.bytes.windows(END.len()).position(|window| window == END) {
            let event: Vec<u8> = self.bytes.drain(..end + END.len()).collect();
            self.read(&event[..end])?;
        }
        if self.bytes.len() > EVENT_BYTES_MAX {
            return Err(Broken(format!("an event of more than {EVENT_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// What was said next.
    pub(super) fn next(&mut self) -> Option<Said> {
        self.said.pop_front()
    }

    fn read(&mut self, event: &[u8]) -> Result<(), Broken> {
        let Some(data) = event.strip_prefix(b"data: ") else { return Ok(()) };
        if data == DONE.as_bytes() {
            return Ok(());
        }
        let chunk: Value = serde_json::from_slice(data).map_err(broken)?;
        if let Some(error) = chunk.get("error") {
            let code = error["code"].as_str().unwrap_or("error").to_owned();
            self.said.push_back(Said::Refused(code));
            return Ok(());
        }
        let delta = &chunk["choices"][0]["delta"];
        let texts = [&delta["content"], &delta["audio"]["transcript"]];
        if texts.iter().any(|text| text.as_str().is_some_and(|text| !text.is_empty())) {
            self.said.push_back(Said::Text);
        }
        if let Some(data) = delta["audio"]["data"].as_str().filter(|data| !data.is_empty()) {
            let sound = STANDARD.decode(data).map_err(broken)?;
            self.said.push_back(Said::Sound(sound.len() as u64));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &mut Events) -> Vec<Said> {
        std::iter::from_fn(|| events.next()).collect()
    }

    #[test]
    fn events_are_read_wherever_they_are_cut() {
        let all = concat!(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            ": a comment\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"audio\":{\"transcript\":\"b\"}}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"audio\":{\"data\":\"AAAA\"}}}]}\n\n",
            "data: {\"choices\":[]}\n\n",
            "data: [DONE]\n\n",
        );
        let expected = [Said::Text, Said::Text, Said::Sound(3)];
        for size in [1, 7, all.len()] {
            let mut events = Events::default();
            all.as_bytes().chunks(size).for_each(|piece| events.push(piece).unwrap());
            assert_eq!(read(&mut events), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_goes_wrong_is_told_by_its_code() {
        let mut events = Events::default();
        events.push(b"data: {\"error\":{\"code\":\"overloaded\"}}\n\n").unwrap();
        assert_eq!(read(&mut events), [Said::Refused("overloaded".to_owned())]);
        assert!(events.push(b"data: {\n\n").is_err());
        assert!(Events::default().push(&vec![b'x'; EVENT_BYTES_MAX + 1]).is_err());
    }
}
