//! What a key uses of what it may: sessions, contexts, characters a minute. Time is an argument.
//!
//! Characters are a bucket that holds a minute's worth and fills evenly. A text that is longer than the bucket passes when the
//! bucket is full and leaves a debt: no text is too long for ever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::Quota;

/// When to ask again for something that is given back at nobody knows what time.
const PLACE_RETRY: Duration = Duration::from_secs(1);

/// What one key uses, all its connections together.
#[derive(Debug)]
pub(crate) struct Allowance {
    usage: Mutex<Usage>,
}

#[derive(Debug)]
struct Usage {
    quota: Quota,
    sessions: u32,
    contexts: u32,
    /// Characters that are left; below zero: owed.
    chars: f64,
    /// When `chars` was reckoned.
    at: Duration,
}

/// A limit of a key that is reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{limit} of the key is {allowed}")]
pub(crate) struct Over {
    /// Name of the setting.
    pub(crate) limit: &'static str,
    /// Its value.
    pub(crate) allowed: u32,
    /// When to ask again.
    pub(crate) retry_after: Duration,
}

/// Something that counts; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    of: Arc<Allowance>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Session,
    Context,
}

impl Allowance {
    /// Nothing is used yet.
    pub(crate) fn new(quota: Quota) -> Self {
        let chars = quota.chars_per_minute.map_or(0.0, f64::from);
        let (sessions, contexts, at) = (0, 0, Duration::ZERO);
        Self { usage: Mutex::new(Usage { quota, sessions, contexts, chars, at }) }
    }

    /// The key may use something else from now on; what it uses, it keeps.
    pub(crate) fn set_quota(&self, quota: Quota) {
        self.usage().quota = quota;
    }

    /// One more session or speech request.
    ///
    /// # Errors
    /// [`Over`]
    pub(crate) fn session(self: &Arc<Self>) -> Result<Place, Over> {
        self.take(Kind::Session, 0)
    }

    /// One more context, in the place of so many that are about to go.
    ///
    /// # Errors
    /// [`Over`]
    pub(crate) fn context(self: &Arc<Self>, leaving: u32) -> Result<Place, Over> {
        self.take(Kind::Context, leaving)
    }

    /// More text, at a time since the server began.
    ///
    /// # Errors
    /// [`Over`], and nothing was taken.
    pub(crate) fn chars(&self, chars: usize, now: Duration) -> Result<(), Over> {
        let mut usage = self.usage();
        let Some(allowed) = usage.quota.chars_per_minute else { return Ok(()) };
        let (full, per_second) = (f64::from(allowed), f64::from(allowed) / 60.0);
        let passed = now.saturating_sub(usage.at);
        usage.at = usage.at.max(now);
        usage.chars = (usage.chars + passed.as_secs_f64() * per_second).min(full);
        let needed = (chars as f64).min(full);
        if usage.chars < needed {
            let wait = (needed - usage.chars) / per_second.max(f64::MIN_POSITIVE);
            let retry_after = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
            return Err(Over { limit: "chars_per_minute", allowed, retry_after });
        }
        usage.chars -= chars as f64;
        Ok(())
    }

    fn take(self: &Arc<Self>, kind: Kind, leaving: u32) -> Result<Place, Over> {
        let mut usage = self.usage();
        let (limit, allowed) = match kind {
            Kind::Session => ("max_sessions", usage.quota.max_sessions),
            Kind::Context => ("max_contexts", usage.quota.max_contexts),
        };
        let used = usage.count(kind);
        if let Some(allowed) = allowed
            && used.saturating_sub(leaving) >= allowed
        {
            return Err(Over { limit, allowed, retry_after: PLACE_RETRY });
        }
        *used += 1;
        Ok(Place { of: self.clone(), kind })
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An allowance on the clock of one session.
#[derive(Debug, Clone)]
pub struct SessionAllowance {
    allowance: Arc<Allowance>,
    /// When the session began.
    since: Duration,
}

impl SessionAllowance {
    /// For a session that begins now, at a time since the server began.
    pub(crate) fn new(allowance: Arc<Allowance>, since: Duration) -> Self {
        Self { allowance, since }
    }

    /// As [`Allowance::context`].
    pub(crate) fn context(&self, leaving: usize) -> Result<Place, Over> {
        self.allowance.context(u32::try_from(leaving).unwrap_or(u32::MAX))
    }

    /// As [`Allowance::chars`], at a time since the session began.
    pub(crate) fn chars(&self, chars: usize, now: Duration) -> Result<(), Over> {
        self.allowance.chars(chars, self.since + now)
    }
}

impl Default for SessionAllowance {
    /// One without limits.
    fn default() -> Self {
        Self::new(Arc::new(Allowance::new(Quota::default())), Duration::ZERO)
    }
}

impl Usage {
    fn count(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Session => &mut self.sessions,
            Kind::Context => &mut self.contexts,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.of.usage().count(self.kind) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(chars_per_minute: u32) -> Arc<Allowance> {
        let quota = Quota {
            max_sessions: Some(1),
            max_contexts: Some(2),
            chars_per_minute: Some(chars_per_minute),
        };
        Arc::new(Allowance::new(quota))
    }

    #[test]
    fn places_are_counted_by_kind_and_come_back() {
        let ours = allowance(60);
        let session = ours.session().unwrap();
        let over = ours.session().unwrap_err();
        assert_eq!(over.to_string(), "max_sessions of the key is 1");
        let _contexts = [ours.context(0).unwrap(), ours.context(0).unwrap()];
        assert_eq!(ours.context(0).unwrap_err().limit, "max_contexts");
        assert!(ours.context(1).is_ok(), "one of the two is about to go");
        drop(session);
        assert!(ours.session().is_ok());
    }

    #[test]
    fn characters_come_back_evenly() {
        let (ours, second) = (allowance(60), Duration::from_secs(1));
        assert!(ours.chars(60, Duration::ZERO).is_ok());
        let over = ours.chars(3, second).unwrap_err();
        assert_eq!((over.limit, over.allowed), ("chars_per_minute", 60));
        assert_eq!(over.retry_after, 2 * second);
        assert!(ours.chars(3, second + over.retry_after).is_ok());
        // The clock of one connection may be read before that of another.
        assert!(ours.chars(1, second).is_err());
    }

    #[test]
    fn a_text_longer_than_a_minutes_worth_waits_for_a_full_bucket_and_is_owed() {
        let (ours, minute) = (allowance(60), Duration::from_secs(60));
        assert!(ours.chars(120, Duration::ZERO).is_ok());
        assert!(ours.chars(1, minute).is_err(), "60 are still owed");
        assert!(ours.chars(60, 2 * minute).is_ok());
    }

    #[test]
    fn a_key_without_limits_is_never_over() {
        let ours = Arc::new(Allowance::new(Quota::default()));
        assert!(ours.chars(usize::MAX, Duration::ZERO).is_ok());
        let places: Vec<Place> = (0..100).map(|_| ours.session().unwrap()).collect();
        assert_eq!(places.len(), 100);
    }
}
