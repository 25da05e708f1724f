//! A speech language model in memory: everything that an engine needs to run it.

use std::ops::Range;
use std::sync::Arc;

use codecs::streaming::Codec;
use codecs::weights::LoadError;

use super::{SpeechBundle, SpeechManifest, SpeechVoice, TextIds};
use crate::hearing::Ear;
use crate::kernels::matrix::Precision;
use crate::models::fast;
use crate::models::speech::{Audit, Family, SpeechConfig, SpeechLm, open_model};
use crate::start::Progress;
use crate::turn::Model;

/// How a model is loaded.
#[derive(Clone)]
pub struct LoadOptions {
    /// How its matrices are stored.
    pub precision: Precision,
    /// Threads that share the rows of a batch.
    pub pool: Option<Arc<rayon::ThreadPool>>,
}

/// What loading all of a bundle showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// Transformer layers.
    pub layers: usize,
    /// Numbers of the network.
    pub parameters: usize,
    /// Streams of codes.
    pub streams: usize,
    /// Bytes of one token's keys and values in all layers, as `f32`.
    pub token_bytes: usize,
    /// Tokens that the network was made for.
    pub context_tokens: usize,
    /// Whether it hears.
    pub hears: bool,
    /// Tensors that are not read, by what their names begin with, and how many those are.
    pub unused: Vec<(String, usize)>,
}

/// A model that can be run.
pub struct Speech {
    /// What it says of itself: defaults of sampling, tasks.
    pub manifest: SpeechManifest,
    /// Sizes, and the symbols and streams of its family.
    pub config: SpeechConfig,
    /// The network; key/value memory is still to be reserved.
    pub network: SpeechLm,
    /// What its turns have in common.
    pub model: Arc<Model>,
    /// Its tokenizer.
    pub text: Arc<TextIds>,
    /// Codes to sound; none: it only writes.
    pub codec: Option<Arc<Codec>>,
    /// The streams that the codec reads.
    pub sounding: Range<usize>,
    /// Its voices.
    pub voices: Vec<SpeechVoice>,
}

impl Speech {
    /// Symbols and streams.
    pub fn family(&self) -> &Family {
        &self.config.family
    }
}

impl SpeechBundle {
    /// Loads every part, what hears among them, and keeps nothing.
    ///
    /// # Errors
    /// As [`SpeechBundle::load`], of every part.
    pub fn inspect(&self, progress: &mut dyn FnMut(Progress)) -> Result<Inspected, LoadError> {
        let (config, weights) = open_model(&self.model_folder())?;
        let unused = Audit::new(&weights, &config).unused_groups();
        let speech = self.load(&LoadOptions { precision: Precision::F32, pool: None }, progress)?;
        let mut ear = Ear::of(self, speech.network.heard());
        drop(speech);
        ear.as_mut().map(Ear::load).transpose()?;
        let backbone = &config.backbone;
        Ok(Inspected {
            layers: backbone.layers,
            parameters: config.parameters(),
            streams: config.streams(),
            token_bytes: 2 * backbone.layers * backbone.kv_width() * size_of::<f32>(),
            context_tokens: backbone.max_positions,
            hears: ear.is_some(),
            unused,
        })
    }

    /// Builds the networks. `progress` hears of the model's parameters as they are loaded; the codec is a small part beside
    /// them.
    ///
    /// # Errors
    /// A tensor that is missing, misshapen or not finite, by file and name.
    pub fn load(
        &self,
        options: &LoadOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Speech, LoadError> {
        let codec = match &self.manifest.codec {
            Some(entry) => Some(Arc::new(Codec::open(entry.kind, &self.root.join(&entry.path))?)),
            None => None,
        };
        let (config, weights) = open_model(&self.model_folder())?;
        let network = fast::Options {
            precision: options.precision,
            kept_ids: None,
            pool: options.pool.clone(),
        };
        let (mut loaded, total) = (0, config.parameters());
        let mut count = |parameters| {
            loaded += parameters;
            progress(Progress { loaded, total });
        };
        let network = SpeechLm::load(&weights, &config, &network, &mut count)?;
        let streams = config.family.streams().to_vec();
        let model = Arc::new(Model { streams, outputs: network.layout() });
        Ok(Speech {
            manifest: self.manifest.clone(),
            config,
            network,
            model,
            text: self.text.clone(),
            codec,
            sounding: self.sounding(),
            voices: self.voices.clone(),
        })
    }
}
