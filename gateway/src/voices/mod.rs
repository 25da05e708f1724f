//! The voices that can be asked for now: the bundle's, and those that clients add and take away while the server runs.
//!
//! ```text
//! made --add--> engine, folder, catalogue        remove--> catalogue, engine, folder
//! ```
//!
//! A session has the catalogue of its beginning. Knows no HTTP and no sound; how a voice is made stands in `transport`.

mod store;

use std::sync::{Arc, PoisonError, RwLock};

use engine::{Handle, NewVoice, VoiceError, VoiceSource};
use tokio::sync::{Semaphore, SemaphorePermit};

use self::store::Store;
pub(crate) use self::store::{StoreError, Stored};
use crate::config::VoiceUploads;
use crate::protocol::{Catalogue, Voice};

/// What those are called that clients add, in ElevenLabs' words.
const ADDED: &str = "cloned";
/// Before the random part of an id.
const PREFIX: &str = "v_";

/// Why a voice is not added or taken away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// There is none, or it is somebody else's, which is nobody's business.
    #[error("there is no voice {0:?} of yours")]
    Unknown(String),
    #[error("voice {0:?} belongs to the bundle")]
    Premade(String),
    #[error(transparent)]
    Engine(#[from] VoiceError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All voices of a server.
pub(crate) struct Voices {
    pub(crate) settings: VoiceUploads,
    engine: Arc<Handle>,
    catalogue: RwLock<Arc<Catalogue>>,
    store: Option<Store>,
    uploads: Semaphore,
}

impl Voices {
    /// Those of the bundle, and those that were kept. One that does not suit the bundle is told in the log and left alone.
    ///
    /// # Errors
    /// A folder that cannot be read or made.
    pub(crate) fn open(
        settings: VoiceUploads,
        engine: Arc<Handle>,
        catalogue: Catalogue,
    ) -> Result<Self, StoreError> {
        let store = settings.folder.as_deref().map(Store::open).transpose()?;
        let uploads = Semaphore::new(settings.max_uploads);
        let catalogue = RwLock::new(Arc::new(catalogue));
        let voices = Self { settings, engine, catalogue, store, uploads };
        for kept in voices.store.iter().flat_map(Store::voices) {
            let id = kept.voice_id.clone();
            let codes = VoiceSource::Codes(kept.codes.clone());
            let made = voices.engine.make_voice(kept.model.as_deref(), codes);
            let shown = made.and_then(|made| voices.show(&kept, made));
            if let Err(error) = shown {
                tracing::error!(voice = id, "a kept voice cannot be used: {error}");
            }
        }
        Ok(voices)
    }

    /// All that can be asked for.
    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        self.catalogue.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A place to make a voice in; none when all are taken.
    pub(crate) fn upload(&self) -> Option<SemaphorePermit<'_>> {
        self.uploads.try_acquire().ok()
    }

    /// A new id: random, and safe as the name of a file.
    pub(crate) fn new_id() -> String {
        format!("{PREFIX}{}", crate::server::random_hex())
    }

    /// Adds a voice. Reads and writes files: not for a thread that may not wait.
    ///
    /// # Errors
    /// No room for another, or a folder that cannot be written; nothing was added then.
    pub(crate) fn add(&self, voice: &Stored, made: NewVoice) -> Result<(), Refused> {
        if let Some(store) = &self.store {
            store.keep(voice)?;
        }
        let shown = self.show(voice, made);
        if shown.is_err()
            && let Some(store) = &self.store
        {
            store.forget(&voice.voice_id)?;
        }
        Ok(shown?)
    }

    /// Takes a voice away; contexts that speak with it go on.
    ///
    /// # Errors
    /// A voice that is not there, is not of this key, or belongs to the bundle; a file that cannot be removed.
    pub(crate) fn remove(&self, id: &str, key: Option<&str>) -> Result<(), Refused> {
        let model = {
            let mut catalogue = self.catalogue.write().unwrap_or_else(PoisonError::into_inner);
            let found = catalogue.all_voices().find(|v| v.voice_id == id && v.is_for(key));
            let model = match found {
                None => return Err(Refused::Unknown(id.to_owned())),
                Some(voice) if voice.category != ADDED => {
                    return Err(Refused::Premade(id.to_owned()));
                }
                Some(voice) => voice.model.clone(),
            };
            let mut changed = (**catalogue).clone();
            changed.retain_voices(|v| v.voice_id != id);
            *catalogue = Arc::new(changed);
            model
        };
        self.engine.remove_voice(&model, id);
        if let Some(store) = &self.store {
            store.forget(id)?;
        }
        Ok(())
    }

    /// Makes a voice known to the engine and to those who ask.
    fn show(&self, voice: &Stored, made: NewVoice) -> Result<(), VoiceError> {
        let model = made.model.clone();
        self.engine.add_voice(&*voice.voice_id, made)?;
        let mut catalogue = self.catalogue.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = (**catalogue).clone();
        let known = catalogue.models.iter().find(|m| m.id == model);
        changed.add_voice(Voice {
            voice_id: voice.voice_id.clone(),
            name: voice.name.clone(),
            category: ADDED,
            languages: known.map(|m| m.languages.clone()).unwrap_or_default(),
            styles: known.map(|m| m.styles.clone()).unwrap_or_default(),
            owner: voice.owner.clone(),
            model,
        });
        *catalogue = Arc::new(changed);
        Ok(())
    }
}
