//! One file from a server: begun where it was broken off, tried again as long as it comes forward, checked before it has its
//! name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::{Agent, Body};

use super::checksum::{Checksum, Hasher};
use super::hub::next_page;

/// Ending of a file that is not complete.
pub(super) const PARTIAL: &str = ".part";
/// Tries in a row without a single new byte.
const TRIES: u32 = 5;
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 64 << 10;

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server cannot be reached, or falls silent again and again.
    #[error("{url}: {reason}")]
    Server {
        /// What was asked for.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// The server says no.
    #[error("{url}: the server answers {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The list of files is not one.
    #[error("{url}: {reason}")]
    Index {
        /// The list.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What came is not what the list says.
    #[error("{url}: {kind} is {found}, the list says {expected}")]
    Checksum {
        /// The file.
        url: String,
        /// Which checksum.
        kind: &'static str,
        /// What came.
        found: String,
        /// What should have come.
        expected: String,
    },
    /// The disk refuses.
    #[error("{}: {source}", file.display())]
    Disk {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What a try came to.
enum Broken {
    /// Trying again may help.
    Off(FetchError),
    /// It will not.
    Final(FetchError),
}

/// A client with patience for slow lines and none for silent ones.
pub(super) fn client() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(SILENCE))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("dovecote/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// A small answer.
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    /// Where it goes on, if it is a page of something.
    pub(super) next: Option<String>,
}

/// Asks for a small answer, whole.
pub(super) fn ask(client: &Agent, url: &str, bytes_max: u64) -> Result<Answer, FetchError> {
    let server = |e: &dyn std::fmt::Display| FetchError::Server {
        url: url.to_owned(),
        reason: e.to_string(),
    };
    let answer = client.get(url).call().map_err(|error| match error {
        ureq::Error::Io(e) => server(&format!("cannot be reached: {e}")),
        error => server(&error),
    })?;
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(FetchError::Status { url: url.to_owned(), status: status.as_u16() });
    }
    let link = answer.headers().get("Link").and_then(|link| link.to_str().ok());
    let next = link.and_then(next_page).map(str::to_owned);
    let body = answer.into_body().into_with_config().limit(bytes_max).read_to_vec();
    Ok(Answer { body: body.map_err(|e| server(&e))?, next })
}

/// A file that is to be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Below the bundle's folder, with `/` between the parts.
    pub(super) path: String,
    pub(super) url: String,
    pub(super) bytes: u64,
    pub(super) checksum: Checksum,
}

/// A file on its way.
pub(super) struct Download<'a> {
    pub(super) client: &'a Agent,
    pub(super) wanted: &'a Wanted,
    pub(super) file: PathBuf,
    /// How long to wait before the second try; twice as long before each that follows.
    pub(super) pause: Duration,
}

impl Download<'_> {
    /// Fetches what is missing of the file. `came` is told of bytes, those among them that were there already; a negative
    /// number are bytes that come once more.
    pub(super) fn run(&self, came: &mut dyn FnMut(i64)) -> Result<(), FetchError> {
        if self.is_there()? {
            came(self.wanted.bytes as i64);
            return Ok(());
        }
        let (mut tries, mut pause, mut best) = (0, self.pause, 0);
        loop {
            let mut told = 0;
            let attempt = self.attempt(&mut |bytes| {
                told += bytes;
                came(bytes);
            });
            match attempt {
                Ok(()) => return Ok(()),
                Err(Broken::Final(error)) => return Err(error),
                Err(Broken::Off(error)) => {
                    came(-told);
                    let length = fs::metadata(self.partial()).map_or(0, |m| m.len());
                    if length > best {
                        (tries, pause, best) = (0, self.pause, length);
                    }
                    tries += 1;
                    if tries >= TRIES {
                        return Err(error);
                    }
                    std::thread::sleep(pause);
                    pause *= 2;
                }
            }
        }
    }

    fn is_there(&self) -> Result<bool, FetchError> {
        match fs::metadata(&self.file) {
            Ok(found) if found.len() == self.wanted.bytes => {
                let mut hash = self.hasher();
                let mut opened = File::open(&self.file).map_err(disk(&self.file))?;
                io::copy(&mut opened, &mut hash).map_err(disk(&self.file))?;
                Ok(hash.finish() == self.wanted.checksum.digits())
            }
            _ => Ok(false),
        }
    }

    fn hasher(&self) -> Hasher {
        self.wanted.checksum.hasher(self.wanted.bytes)
    }

    fn partial(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(PARTIAL);
        name.into()
    }

    /// One request: the rest of the file, or all of it.
    fn attempt(&self, came: &mut dyn FnMut(i64)) -> Result<(), Broken> {
        let partial = self.partial();
        let is_final = |e| Broken::Final(disk(&partial)(e));
        if let Some(folder) = partial.parent() {
            fs::create_dir_all(folder).map_err(is_final)?;
        }
        let sink = OpenOptions::new().create(true).append(true).open(&partial);
        let mut sink = sink.map_err(is_final)?;
        let mut have = sink.metadata().map_err(is_final)?.len();
        if have > self.wanted.bytes {
            sink.set_len(0).map_err(is_final)?;
            have = 0;
        }
        let rest = if have < self.wanted.bytes { Some(self.ask(have)?) } else { None };
        if let Some((0, _)) = rest {
            sink.set_len(0).map_err(is_final)?;
            have = 0;
        }
        let mut hash = self.hasher();
        io::copy(&mut File::open(&partial).map_err(is_final)?, &mut hash).map_err(is_final)?;
        came(have as i64);
        if let Some((_, body)) = rest {
            self.copy(body, have, &mut sink, &mut hash, came)?;
        }
        self.check(hash, &partial)?;
        fs::rename(&partial, &self.file).map_err(is_final)
    }

    /// Asks for what lies behind `have` bytes; gives where the answer begins.
    fn ask(&self, have: u64) -> Result<(u64, Body), Broken> {
        let mut request = self.client.get(&self.wanted.url);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let answer = request.call().map_err(|e| Broken::Off(self.server(&e)))?;
        let status = answer.status();
        let range = answer.headers().get("Content-Range").and_then(|r| r.to_str().ok());
        let continues = range.is_some_and(|r| r.starts_with(&format!("bytes {have}-")));
        match status {
            StatusCode::OK => Ok((0, answer.into_body())),
            StatusCode::PARTIAL_CONTENT if continues => Ok((have, answer.into_body())),
            status => {
                let url = self.wanted.url.clone();
                let error = FetchError::Status { url, status: status.as_u16() };
                let may_change = status.is_server_error()
                    || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT]
                        .contains(&status);
                Err(if may_change { Broken::Off(error) } else { Broken::Final(error) })
            }
        }
    }

    /// Writes a body down, but no more than the list says.
    fn copy(
        &self,
        mut body: Body,
        mut have: u64,
        sink: &mut File,
        hash: &mut Hasher,
        came: &mut dyn FnMut(i64),
    ) -> Result<(), Broken> {
        let mut reader = body.as_reader();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = reader.read(&mut buffer).map_err(|e| Broken::Off(self.server(&e)))?;
            if read == 0 {
                break;
            }
            have += read as u64;
            if have > self.wanted.bytes {
                let reason =
                    format!("more than the {} bytes that the list says", self.wanted.bytes);
                return Err(Broken::Final(self.server(&reason)));
            }
            let written = sink.write_all(&buffer[..read]);
            written.map_err(|e| Broken::Final(disk(&self.file)(e)))?;
            hash.write_all(&buffer[..read]).map_err(|e| Broken::Final(disk(&self.file)(e)))?;
            came(read as i64);
        }
        match have {
            have if have < self.wanted.bytes => {
                let reason = format!("broken off after {have} of {} bytes", self.wanted.bytes);
                Err(Broken::Off(self.server(&reason)))
            }
            _ => Ok(()),
        }
    }

    /// What is not what the list says is thrown away, so that another run begins anew.
    fn check(&self, hash: Hasher, partial: &Path) -> Result<(), Broken> {
        let Wanted { url, checksum, .. } = self.wanted;
        let (found, expected) = (hash.finish(), checksum.digits().to_owned());
        if found == expected {
            return Ok(());
        }
        fs::remove_file(partial).map_err(|e| Broken::Final(disk(partial)(e)))?;
        let (url, kind) = (url.clone(), checksum.kind());
        Err(Broken::Final(FetchError::Checksum { url, kind, found, expected }))
    }

    fn server(&self, reason: &dyn std::fmt::Display) -> FetchError {
        FetchError::Server { url: self.wanted.url.clone(), reason: reason.to_string() }
    }
}

/// A refusal of the disk, with the file that it is about.
pub(super) fn disk(file: &Path) -> impl Fn(io::Error) -> FetchError {
    move |source| FetchError::Disk { file: file.to_path_buf(), source }
}
