//! What a model hears with, and what becomes of a recording.

use std::path::PathBuf;
use std::sync::Arc;

use codecs::qwen3_omni::{self, LiveClip, MelSettings, Tail};
use codecs::resample::Resampler;
use codecs::seanet;
use codecs::units::{Extractor, Units};
use codecs::weights::{LoadError, Weights};

use super::{HearingError, Limits, RATE};
use crate::answer::Part;
use crate::bundle::speech::{AudioInput, SpeechBundle};
use crate::models::speech::{Heard, open_model};

/// What a model hears with; its networks are loaded when the first recording comes.
pub(crate) struct Ear {
    files: Files,
    limits: Limits,
    /// Whether recordings that come in are heard before they end.
    is_live: bool,
    ready: Option<Ready>,
}

enum Files {
    Tower { folder: PathBuf, model: PathBuf, mel: MelSettings, heard: Arc<Heard> },
    Units { features: PathBuf, layer: usize, centers: PathBuf, codec: PathBuf },
}

enum Ready {
    Tower(Box<qwen3_omni::Hearing>, Arc<Heard>),
    Units(Box<Coded>),
}

/// What makes codes.
struct Coded {
    extractor: Extractor,
    units: Units,
    codec: seanet::Encoder,
}

impl Ear {
    /// What a bundle hears with, if anything; `heard` keeps the rows of its network's clips.
    pub(crate) fn of(bundle: &SpeechBundle, heard: Arc<Heard>) -> Option<Self> {
        let path = |part: &String| bundle.root.join(part);
        let (files, seconds_max, is_live) = match bundle.manifest.audio_input.as_ref()? {
            AudioInput::Qwen3Omni { path: folder, normalize, live, max_seconds } => {
                // As in training: what is brought to one level is followed by silence. Servers that leave out the one leave
                // out the other.
                let tail = if *normalize { Tail::Silence } else { Tail::Mirror };
                let mel = MelSettings { normalise: *normalize, tail };
                let (folder, model) = (path(folder), bundle.model_folder());
                (Files::Tower { folder, model, mel, heard }, *max_seconds, *live)
            }
            AudioInput::Units { features, layer, centers, max_seconds } => {
                let codec = path(&bundle.manifest.codec.as_ref()?.path);
                let (features, centers) = (path(features), path(centers));
                // Features and codec look at the whole of a recording.
                (Files::Units { features, layer: *layer, centers, codec }, *max_seconds, false)
            }
        };
        let in_codes = matches!(files, Files::Units { .. });
        let limits = Limits { seconds_max: f64::from(seconds_max), in_codes };
        Some(Self { files, limits, is_live, ready: None })
    }

    /// Longest recording, in samples at 24 kHz.
    pub(crate) fn samples_max(&self) -> usize {
        (self.limits.seconds_max * f64::from(RATE)) as usize
    }

    /// What can be said of a recording beforehand.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Loads the networks, if they are not.
    ///
    /// # Errors
    /// The first part that is missing or damaged, by file and field or tensor.
    pub(crate) fn load(&mut self) -> Result<(), LoadError> {
        self.ready().map(drop)
    }

    fn ready(&mut self) -> Result<&Ready, LoadError> {
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => self.files.load()?,
        };
        Ok(self.ready.insert(ready))
    }

    /// Makes codes of a recording at 24 kHz, `[streams][frames]`.
    pub(crate) fn codes(&mut self, samples: &[f32]) -> Result<Vec<Vec<u16>>, HearingError> {
        match self.hear(samples)? {
            Part::Codes(codes) => Ok(codes.to_vec()),
            _ => Err(HearingError::NoCodes),
        }
    }

    /// Whether what it hears becomes codes.
    pub(crate) fn makes_codes(&self) -> bool {
        self.limits.in_codes
    }

    /// A recording at its beginning, of which more is to come.
    ///
    /// # Errors
    /// [`HearingError::Load`].
    pub(crate) fn listen(&mut self) -> Result<Listener, HearingError> {
        let is_live = self.is_live;
        Ok(match self.ready().map_err(|e| HearingError::Load(e.to_string()))? {
            Ready::Tower(hearing, _) if is_live => {
                Listener::Live(Box::new((resampler(), hearing.begin())))
            }
            Ready::Tower(..) | Ready::Units(_) => Listener::Waiting(Vec::new()),
        })
    }

    /// Goes on with a recording by samples at 24 kHz, the last ones where `ended`. What was heard is added to its part, which
    /// is live no longer once the recording has ended. Returns whether anything was.
    ///
    /// # Errors
    /// See [`HearingError`].
    pub(crate) fn hear_more(
        &mut self,
        listener: &mut Listener,
        part: &mut Part,
        samples: &[f32],
        ended: bool,
    ) -> Result<bool, HearingError> {
        let (resampler, clip) = match listener {
            Listener::Live(live) => &mut **live,
            Listener::Waiting(all) => {
                all.extend_from_slice(samples);
                if ended {
                    *part = self.hear(all)?;
                }
                return Ok(ended);
            }
        };
        let ready = self.ready().map_err(|e| HearingError::Load(e.to_string()))?;
        let (Ready::Tower(hearing, heard), Part::Live(clips)) = (ready, &mut *part) else {
            unreachable!("only a tower hears while sound comes in; this is a bug")
        };
        let mut lowered = Vec::new();
        resampler.push(samples, &mut lowered);
        if ended {
            resampler.finish(&mut lowered);
        }
        let rows = hearing.step(clip, &lowered, ended);
        // Length and numbers were checked when the samples came.
        let rows = rows.map_err(|_| HearingError::TooShort { samples: 0 })?;
        let is_more = rows.time() > 0;
        if is_more {
            clips.push(Arc::new(heard.add(rows.into_data())));
        }
        if ended {
            *part = Part::Heard(std::mem::take(clips));
        }
        Ok(is_more)
    }

    /// Makes a part of a prompt of a recording at 24 kHz.
    pub(crate) fn hear(&mut self, samples: &[f32]) -> Result<Part, HearingError> {
        self.limits.check(samples)?;
        let ready = self.ready().map_err(|e| HearingError::Load(e.to_string()))?;
        let too_short = HearingError::TooShort { samples: samples.len() };
        ready.part(&lowered(samples)).ok_or(too_short)
    }
}

impl Files {
    fn load(&self) -> Result<Ready, LoadError> {
        match self {
            Self::Tower { folder, model, mel, heard } => {
                let config = qwen3_omni::Config::read(&folder.join("config.json"))?;
                let (tower, (_, model)) = (Weights::open(folder)?, open_model(model)?);
                let (tower, model) = ((&tower, &config), (&model, heard.width()));
                // The limit was held before the rate was converted, which may round up.
                let hearing = qwen3_omni::Hearing::load(tower, model, *mel, f64::INFINITY)?;
                Ok(Ready::Tower(Box::new(hearing), heard.clone()))
            }
            Self::Units { features, layer, centers, codec } => {
                let extractor = Extractor::open(features, *layer)?;
                let units = Units::load(&Weights::open(centers)?, extractor.width())?;
                let config = seanet::Config::read(&codec.join("config.json"))?;
                let codec = seanet::Encoder::load(&Weights::open(codec)?, &config)?;
                Ok(Ready::Units(Box::new(Coded { extractor, units, codec })))
            }
        }
    }
}

impl Ready {
    /// What a clip at 16 kHz is in a prompt; nothing where it is too short.
    fn part(&self, samples: &[f32]) -> Option<Part> {
        match self {
            Self::Tower(hearing, heard) => {
                let rows = hearing.encode(samples).ok()?.into_data();
                Some(Part::Heard(vec![Arc::new(heard.add(rows))]))
            }
            Self::Units(coded) => {
                let features = coded.extractor.features(samples);
                let mut rows = vec![coded.units.nearest(&features)];
                rows.extend(coded.codec.encode(samples));
                // Both have 50 frames a second; what one has at its end and the other has not is left out.
                let frames = rows.iter().map(Vec::len).min().filter(|&frames| frames > 0)?;
                rows.iter_mut().for_each(|row| row.truncate(frames));
                Some(Part::Codes(rows.into()))
            }
        }
    }
}

/// A recording of which more is to come.
pub(crate) enum Listener {
    /// It is heard window by window.
    Live(Box<(Resampler, LiveClip)>),
    /// It is heard when it has ended.
    Waiting(Vec<f32>),
}

/// To the rate that models hear.
fn resampler() -> Resampler {
    let resampler = Resampler::new(RATE, qwen3_omni::RATE);
    resampler.expect("both rates are the resampler's own; this is a bug")
}

fn lowered(samples: &[f32]) -> Vec<f32> {
    let (mut resampler, mut out) = (resampler(), Vec::new());
    resampler.push(samples, &mut out);
    resampler.finish(&mut out);
    out
}
