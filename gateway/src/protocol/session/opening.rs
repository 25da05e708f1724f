//! A context is asked for: what it may be, which others it takes the place of, and the engine's answer.

use std::sync::Arc;
use std::time::Duration;

use engine::Speech;

use super::options::{Asked, ignored, ignored_in_answer, manner, merge, request};
use super::{Control, Phase, Session};
use crate::error::{Code, Severity, refusal};
use crate::protocol::context::{Context, Delivery, Phase as ContextPhase};
use crate::protocol::event::{ErrorEvent, Open, Opened, Options, Replaces};
use crate::protocol::timer::Timer;
use crate::protocol::{Handle, Output, millis};

/// When to try again after the engine's command queue was full.
const BUSY_RETRY_MS: u64 = 100;

/// What a new context is to do.
enum Wanted {
    Speech(Box<Options>),
    Answer(Asked),
}

impl Session {
    pub(super) fn open(&mut self, open: Open, now: Duration) {
        let name = open.ctx.clone();
        if let Err(error) = self.try_open(open, now) {
            self.error(error.of(&name).about("context.open", None));
        }
    }

    fn try_open(&mut self, open: Open, now: Duration) -> Result<(), Box<ErrorEvent>> {
        let refuse = |code, message: String| Err(Box::new(ErrorEvent::new(code, message)));
        let settled = self.settled.clone().expect("only a session that has started opens contexts");
        if self.names.contains_key(&open.ctx) {
            return refuse(Code::CtxExists, "a context's id is used once in a session".to_owned());
        }
        if matches!(self.phase, Phase::Draining(_)) {
            return refuse(Code::Overloaded, "the session is ending".to_owned());
        }
        let wanted = match open.messages {
            None => Wanted::Speech(Box::new(merge(&open, &settled, &self.setup.catalogue)?)),
            Some(_) => Wanted::Answer(self.asked(&open, &settled)?),
        };
        let after = self.after(open.after.as_deref())?;
        let replaced = self.replaced(open.replaces.as_ref(), now);
        let gone = replaced.iter().filter(|id| self.is_live(id)).count();
        if let Some(message) = self.lacks_place(gone) {
            return refuse(Code::TooManyContexts, message);
        }
        let key_place = match self.setup.allowance.context(gone) {
            Ok(place) => place,
            Err(over) => return refuse(Code::TooManyContexts, over.to_string()),
        };
        if let Wanted::Answer(asked) = &wanted {
            self.charge(asked.chars, now)?;
        }
        // Only now is it sure that a new turn begins.
        for id in replaced {
            self.cancel_one(&id, "replaced", now);
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        self.names.insert(open.ctx.clone(), handle);
        let format = open.format.unwrap_or(settled.delivery.format);
        let delivery = Delivery { format, ..settled.delivery };
        let mut context = Box::new(Context::new(open.ctx, handle, delivery));
        context.asked_at = now;
        context.after = after;
        context.key_place = Some(key_place);
        let options = match wanted {
            Wanted::Answer(asked) => {
                context.ignored = ignored_in_answer(&open.options);
                self.begin_answer(context, asked, now);
                return Ok(());
            }
            Wanted::Speech(options) => options,
        };
        context.ignored = ignored(&options);
        context.manner = manner(&options);
        self.live.insert(handle, context);
        self.timers.set(Timer::ContextIdle(handle), now + settled.context_idle);
        let mut request =
            Box::new(request(&options, &settled, &self.setup.catalogue, open.priority));
        if let Some(said) = open.prosody_from.and_then(|id| self.last_said(&id)) {
            request.prefix = Some(said);
        }
        self.outputs.push_back(Output::Open { context: handle, request, format });
        Ok(())
    }

    /// Takes characters out of what the key may still have spoken.
    fn charge(&mut self, chars: usize, now: Duration) -> Result<(), Box<ErrorEvent>> {
        self.setup.allowance.chars(chars, now).map_err(|over| {
            let mut error = ErrorEvent::new(Code::Overloaded, over.to_string());
            error.retry_after_ms = Some(millis(over.retry_after));
            Box::new(error)
        })
    }

    /// Which limit leaves no place for one more context, when so many are about to go.
    fn lacks_place(&self, gone: usize) -> Option<String> {
        let limits = &self.setup.limits;
        let open = self.live.values().filter(|context| context.record.phase == ContextPhase::Open);
        let (all, open) = (self.live.len() - gone, open.count());
        let (counted, draining) = match self.setup.is_foreign {
            true => (open, all.saturating_sub(open)),
            false => (all, 0),
        };
        if counted >= limits.max_contexts || self.names.len() >= limits.max_context_ids {
            return Some(format!("{} contexts at a time", limits.max_contexts));
        }
        let most = limits.max_draining_contexts;
        (draining >= most).then(|| format!("{most} contexts are still spoken to their end"))
    }

    /// The chunk that a context would be gone on from, if it is still known.
    fn last_said(&self, id: &str) -> Option<Arc<Speech>> {
        let handle = self.names.get(id)?;
        let live = self.live.get(handle).map(|context| &context.record);
        live.or_else(|| self.over.get(handle).map(|record| &**record))?.last_said()
    }

    /// The context whose end a new one waits for; `None` when it has ended already.
    fn after(&self, id: Option<&str>) -> Result<Option<Handle>, Box<ErrorEvent>> {
        let Some(id) = id else { return Ok(None) };
        let Some(handle) = self.names.get(id) else {
            let message = format!("after: there is no context {id:?}");
            return Err(Box::new(ErrorEvent::new(Code::CtxUnknown, message)));
        };
        Ok(Some(*handle).filter(|handle| self.live.contains_key(handle)))
    }

    fn replaced(&self, replaces: Option<&Replaces>, now: Duration) -> Vec<String> {
        match replaces {
            None => Vec::new(),
            Some(Replaces::One(all)) if all == "*" => self.unheard(now),
            Some(Replaces::One(id)) => vec![id.clone()],
            Some(Replaces::Many(ids)) => {
                let mut unique = Vec::new();
                for id in ids {
                    if !unique.contains(id) {
                        unique.push(id.clone());
                    }
                }
                unique
            }
        }
    }

    fn is_live(&self, id: &str) -> bool {
        self.names.get(id).is_some_and(|handle| self.live.contains_key(handle))
    }

    /// All contexts that somebody may still hear.
    pub(super) fn unheard(&self, now: Duration) -> Vec<String> {
        let over = self.over.values().map(|record| &**record);
        let over = over.filter(|c| c.phase == ContextPhase::Done && !c.pacer.played_out(now));
        let live = self.live.values().map(|context| &context.record);
        live.chain(over).map(|record| record.name.clone()).collect()
    }

    pub(super) fn opened(
        &mut self,
        handle: Handle,
        answer: Result<(), engine::Error>,
        now: Duration,
    ) {
        if !self.live.contains_key(&handle) {
            return;
        }
        if let Err(refused) = answer {
            let code = refusal(&refused);
            if let Severity::Session(_) = code.severity() {
                self.live.remove(&handle);
                return self.fatal(code, refused.to_string(), now);
            }
            let mut error = ErrorEvent::new(code, refused.to_string());
            error.retry_after_ms = match &refused {
                engine::Error::Overloaded { retry_after, .. } => {
                    Some(u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX))
                }
                _ => (code == Code::Overloaded).then_some(BUSY_RETRY_MS),
            };
            return self.refuse_open(handle, error);
        }
        self.announce(handle, now);
    }

    /// A context does not open. Its id stays unused, so the client can ask for something else under the same name.
    pub(super) fn refuse_open(&mut self, handle: Handle, error: ErrorEvent) {
        let Some(context) = self.live.remove(&handle) else { return };
        self.names.remove(&context.record.name);
        self.timers.clear(Timer::ContextIdle(handle));
        self.error(error.of(&context.record.name).about("context.open", None));
    }

    /// Tells the client that a context is open.
    fn announce(&mut self, handle: Handle, now: Duration) {
        let Some(context) = self.live.get_mut(&handle) else { return };
        let format = context.format();
        let opened = Opened {
            ctx: context.record.name.clone(),
            handle,
            codec: format.codec,
            clock: format.sample_rate,
            pre_skip: format.clock().pre_skip,
            queue_ms: millis(now - context.asked_at),
            ignored: context.ignored.clone(),
        };
        self.control.push_back(Control::Opened(handle, opened));
    }
}
