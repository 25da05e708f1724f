//! What the server says of contexts: ends, errors, answers to a cancel, times of words, and the text that reached the engine.

use std::time::Duration;

use serde_json::Value;

use super::audio::{between, no_old_sound, words};
use super::{Checked, Miss, Target, count, hard, place, targets, within};
use crate::cases::session::args::Args;
use crate::cases::session::client::Connection;
use crate::cases::session::run::Run;
use crate::cases::session::steps::{is_sound, is_word};
use crate::cases::session::transcript::{Seen, What};

/// Demands about the answers to what a client has just asked.
const ANSWERS: [&str; 5] = [
    "error",
    "error_same_text",
    "no_file_access_outside",
    "accepted_or_error_documented",
    "ack_or_noop",
];
/// Longest wait for them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until something was said of every context.
async fn all_answered(run: &Run) {
    for connection in run.connections() {
        let names: Vec<String> = connection.contexts().keys().cloned().collect();
        let answered = connection.transcript.until(|seen| {
            // Other vendors tell of a context by what it says.
            let told = |ctx: &String| {
                seen.iter().any(|s| match &s.what {
                    What::Audio(audio) => audio.ctx == *ctx,
                    What::Event(event) => event["ctx"] == ctx.as_str(),
                    _ => false,
                })
            };
            let gone = seen.iter().any(|s| s.what == What::Gone);
            (gone || names.iter().all(told)).then_some(())
        });
        // What was not said is found by the demand itself.
        let _ = tokio::time::timeout(PATIENCE, answered).await;
    }
}

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    if ANSWERS.contains(&&*args.name) {
        all_answered(run).await;
    }
    match &*args.name.clone() {
        "no_audio_after_ack" | "audio_after_cancel_ms" => cancelled(run, args)?,
        "ack_within_ms" => acks(run, args)?,
        "audio_only_of" => only_of(run, args)?,
        "ack_or_noop"
        | "no_error"
        | "done_count"
        | "no_done_after_error"
        | "timestamps_start_at_zero"
        | "or_error_with_ctx" => each(run, args)?,
        "count" => counted(run, args)?,
        "order" => ordered(run, args)?,
        "done_within_ms" => done_within(run, args)?,
        "error" => error(run, args)?,
        "errors_count" => {
            let equals: usize = args.need("equals")?;
            let seen = run.connection(None, None)?.transcript.all();
            let n = seen.iter().filter(|s| s.is_event("error", None)).count();
            hard(n == equals, || format!("{n} instead of {equals}"))?;
        }
        "error_same_text" | "no_file_access_outside" => same_refusal(run, args)?,
        "error_or_audio" | "error_or_close" => answered(run, args)?,
        "accepted_or_error_documented" => {
            for (connection, ctx) in targets(run, args)? {
                let seen = connection.transcript.all();
                let told = ["context.opened", "context.done", "error"];
                let told = told.iter().any(|kind| place(&seen, kind, &ctx).is_some());
                let sounds = seen.iter().any(|s| s.audio_of(&ctx).is_some());
                hard(told || sounds, || format!("nothing was said of {ctx}"))?;
            }
        }
        "refused_at_connect" => refused(run, args)?,
        "queued_text_dropped"
        | "engine_text_equals"
        | "engine_text_complete"
        | "engine_text_contains" => {
            texts(run, args).await?;
        }
        "reported_ms_le_sent_ms" | "reported_chars_le_text" => reported(run, args)?,
        "event_flag" => {
            let name: String = args.need("name")?;
            let has = |s: &Seen| {
                let flags = s.event().filter(|(kind, _)| *kind == "context.done");
                flags.is_some_and(|(_, e)| {
                    e["flags"].as_array().is_some_and(|f| f.contains(&name.as_str().into()))
                })
            };
            let any =
                run.connections().iter().any(|c| c.transcript.with(|seen| seen.iter().any(has)));
            hard(any, || format!("no context.done has the flag {name}"))?;
        }
        "timestamps_monotonic" | "offset_equals_samples" | "join_words_equals_reference_text" => {
            timed(run, args).await?;
        }
        "final_last" => final_last(run, args)?,
        "no_binary_between" => silent_between(run, args).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Places of the cancels of a context, and of their answers.
fn cancels(seen: &[Seen], ctx: &str) -> (Vec<usize>, Vec<usize>) {
    let all = seen.iter().enumerate();
    let asked =
        |s: &Seen| matches!(&s.what, What::Sent(m) if m["type"] == "cancel" && m["ctx"] == ctx);
    let sent: Vec<usize> = all.clone().filter(|(_, s)| asked(s)).map(|(at, _)| at).collect();
    let answered =
        all.filter(|(_, s)| s.is_event("context.cancelled", Some(ctx))).map(|(at, _)| at);
    (sent, answered.collect())
}

/// As [`cancels`]; where the surface has no answer to a cancel, the last sound behind it stands for one.
fn cancels_on(connection: &Connection, ctx: &str) -> (Vec<Seen>, Vec<usize>, Vec<usize>) {
    let seen = connection.transcript.all();
    let (asked, mut answers) = cancels(&seen, ctx);
    let is_silent = connection.dial.vendor.as_ref().is_some_and(|v| !v.answers_a_cancel());
    if let Some(&first) = asked.first().filter(|_| is_silent) {
        let sounds = |at: &usize| seen[*at].audio_of(ctx).is_some();
        answers = vec![(first..seen.len()).rev().find(sounds).unwrap_or(first)];
    }
    (seen, asked, answers)
}

fn cancelled(run: &Run, args: &mut Args) -> Checked {
    let max = args.take::<f64>("max")?;
    for target in targets(run, args)? {
        let (connection, ctx) = &target;
        let (seen, asked, answers) = cancels_on(connection, ctx);
        let (Some(&asked), Some(&answer)) = (asked.first(), answers.first()) else {
            return hard(false, || format!("the cancel of {ctx} was not answered"));
        };
        match max {
            Some(max) => between(run, &target, asked, answer, max)?,
            None => {
                let late = seen[answer + 1..].iter().filter(|s| s.audio_of(ctx).is_some()).count();
                hard(late == 0, || format!("{late} frames of {ctx} behind the answer"))?;
            }
        }
    }
    Ok(())
}

fn acks(run: &Run, args: &mut Args) -> Checked {
    let ms: f64 = args.need("ms")?;
    for (connection, ctx) in targets(run, args)? {
        let (seen, asked, answers) = cancels_on(&connection, &ctx);
        for (asked, answer) in asked.iter().zip(&answers) {
            let took = seen[*answer].at.saturating_sub(seen[*asked].at);
            within(run, "the answer to a cancel", took.as_secs_f64() * 1e3, ms)?;
        }
    }
    Ok(())
}

fn only_of(run: &Run, args: &mut Args) -> Checked {
    let (only, after): (String, String) = (args.need("ctx")?, args.need("after")?);
    let ack = after.strip_prefix("ack:").unwrap_or(&after);
    let connection = run.connection(None, Some(&only))?;
    let seen = connection.transcript.all();
    let (_, _, answers) = cancels_on(&connection, ack);
    let Some(&from) = answers.first() else {
        return hard(false, || format!("no answer to the cancel of {ack}"));
    };
    let other = seen[from + 1..].iter().find_map(|s| match &s.what {
        What::Audio(audio) if audio.ctx != only => Some(audio.ctx.clone()),
        _ => None,
    });
    hard(other.is_none(), || format!("sound of {other:?}"))
}

/// Demands on each of some contexts alone.
fn each(run: &Run, args: &mut Args) -> Checked {
    let (max, equals) = (args.take::<usize>("max")?, args.take::<usize>("equals")?);
    args.take::<bool>("each_generation")?;
    if args.name == "ack_or_noop" {
        return never_opened(run, args);
    }
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let dones = count(&seen, "context.done", &ctx);
        match &*args.name {
            "done_count" => {
                let fits = equals.is_none_or(|n| dones == n) && max.is_none_or(|n| dones <= n);
                hard(fits, || format!("{ctx} has {dones} ends"))?;
            }
            "no_error" => {
                let errors = count(&seen, "error", &ctx);
                hard(errors == 0, || format!("{ctx} has {errors} errors"))?;
            }
            "no_done_after_error" => hard(dones == 0, || format!("{ctx} is done all the same"))?,
            "timestamps_start_at_zero" => {
                let first = seen.iter().find_map(|s| s.audio_of(&ctx)).map(|a| a.pos);
                hard(first.is_none_or(|pos| pos == 0), || format!("{ctx} starts at {first:?}"))?;
            }
            _ => {
                // Whatever was refused names its context; what was not, came to its end.
                let told = dones + count(&seen, "error", &ctx);
                hard(told > 0, || format!("nothing was said of {ctx}"))?;
            }
        }
    }
    Ok(())
}

fn never_opened(run: &Run, args: &mut Args) -> Checked {
    let ctx: String = args.need("ctx")?;
    let seen = run.connection(None, None)?.transcript.all();
    let errors = count(&seen, "error", &ctx);
    hard(errors == 0, || format!("{errors} errors about {ctx}"))
}

fn counted(run: &Run, args: &mut Args) -> Checked {
    let (event, equals): (String, usize) = (args.need("event")?, args.need("equals")?);
    let after = args.take::<String>("after")?;
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let from = match &after {
            None => 0,
            Some(after) => match seen.iter().position(|s| is_word(s, after, None)) {
                Some(at) => at + 1,
                None => return hard(false, || format!("there is no {after}")),
            },
        };
        let n = seen[from..].iter().filter(|s| is_word(s, &event, Some(&ctx))).count();
        hard(n == equals, || format!("{n} of {event} instead of {equals}"))?;
    }
    Ok(())
}

fn ordered(run: &Run, args: &mut Args) -> Checked {
    let events: Vec<String> = args.need("events")?;
    let seen = run.connection(None, None)?.transcript.all();
    let at = |event: &String| {
        let (kind, ctx) = event.split_once(':')?;
        let mut all = seen.iter().enumerate();
        match (kind, ctx) {
            (kind, "last") => all.rfind(|(_, s)| is_word(s, kind, None)),
            (kind, ctx) => all.find(|(_, s)| is_word(s, kind, Some(ctx))),
        }
        .map(|(at, _)| at)
    };
    let places: Vec<Option<usize>> = events.iter().map(at).collect();
    let rises = places.windows(2).all(|w| w[0] < w[1]) && !places.contains(&None);
    hard(rises, || format!("{events:?} at {places:?}"))
}

/// The last message that says anything is the end of its context.
fn final_last(run: &Run, args: &mut Args) -> Checked {
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let says = |s: &&Seen| matches!(s.what, What::Event(_) | What::Audio(_));
        let last = seen.iter().rfind(says);
        let is_end = last.is_some_and(|s| is_word(s, "isFinal", Some(&ctx)));
        hard(is_end, || format!("the last message is {:?}", last.map(|s| &s.what)))?;
    }
    Ok(())
}

/// No sound lies between two words; with `first_new_audio` for the second, no sound of a turn that was stopped comes behind the
/// first.
async fn silent_between(run: &Run, args: &mut Args) -> Checked {
    let (a, b): (String, String) = (args.need("a")?, args.need("b")?);
    let connection = run.connection(args.take::<String>("conn")?.as_deref(), None)?;
    let seen = connection.transcript.all();
    let Some(from) = seen.iter().position(|s| is_word(s, &a, None)) else {
        return hard(false, || format!("there is no {a}"));
    };
    let behind = &seen[from..];
    if b == "first_new_audio" {
        return no_old_sound(run, &connection, behind).await;
    }
    let Some(to) = behind.iter().position(|s| is_word(s, &b, None)) else {
        return hard(false, || format!("there is no {b} behind {a}"));
    };
    let sounds = behind[..to].iter().filter(|s| is_word(s, "binary", None)).count();
    hard(sounds == 0 || is_sound(&b), || format!("{sounds} frames between {a} and {b}"))
}

fn done_within(run: &Run, args: &mut Args) -> Checked {
    let ms: f64 = args.need("ms")?;
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let ended =
            |s: &&Seen| matches!(&s.what, What::Sent(m) if m["type"] == "end" && m["ctx"] == ctx);
        let from = seen.iter().find(ended).map(|s| s.at);
        let done = place(&seen, "context.done", &ctx).map(|at| seen[at].at);
        let took = done.zip(from).map(|(done, from)| done.saturating_sub(from));
        let Some(took) = took else { return hard(false, || format!("{ctx} is not done")) };
        within(run, "the end", took.as_secs_f64() * 1e3, ms)?;
    }
    Ok(())
}

fn error(run: &Run, args: &mut Args) -> Checked {
    let code = args.take::<String>("code")?;
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let errors: Vec<&Value> = seen
            .iter()
            .filter(|s| s.is_event("error", Some(&ctx)))
            .filter_map(|s| Some(s.event()?.1))
            .collect();
        let fits = errors.len() == 1 && code.as_ref().is_none_or(|code| errors[0]["code"] == *code);
        let codes: Vec<&Value> = errors.iter().map(|e| &e["code"]).collect();
        hard(fits, || format!("{ctx}: {codes:?} instead of one {code:?}"))?;
    }
    Ok(())
}

/// All were refused in the same words, but for the name that was asked for.
fn same_refusal(run: &Run, args: &mut Args) -> Checked {
    args.take::<String>("dir")?;
    let mut answers: Vec<(String, String)> = Vec::new();
    for (connection, ctx) in targets(run, args)? {
        let seen = connection.transcript.all();
        let error = seen.iter().find(|s| s.is_event("error", Some(&ctx))).and_then(|s| s.event());
        let Some((_, error)) = error else { return hard(false, || format!("{ctx} has no error")) };
        let message = error["message"].as_str().unwrap_or_default();
        let start = message.split('"').next().unwrap_or_default();
        let end = message.rsplit('"').next().unwrap_or_default();
        let code = error["code"].as_str().unwrap_or_default();
        answers.push((code.to_owned(), format!("{start}..{end}")));
    }
    let same = answers.windows(2).all(|w| w[0] == w[1]);
    hard(same, || format!("{answers:?}"))
}

/// Something was said in time about what the client did last.
fn answered(run: &Run, args: &mut Args) -> Checked {
    let ms: f64 = args.need("within_ms")?;
    let ctx = args.take::<String>("ctx")?;
    let connection = run.connections().pop().ok_or(Miss::Hard("no connection".to_owned()))?;
    let seen = connection.transcript.all();
    let about = |s: &&Seen| match (&s.what, &ctx) {
        (What::Close { .. }, None) => true,
        (What::Audio(audio), Some(ctx)) => audio.ctx == *ctx,
        (_, ctx) => s.is_event("error", ctx.as_deref()),
    };
    let ready = seen.iter().find(|s| s.is_event("session.ready", None)).map(|s| s.at);
    let answer = seen.iter().find(about).map(|s| s.at);
    let Some((ready, answer)) = ready.zip(answer) else {
        return hard(false, || "neither an error nor anything else".to_owned());
    };
    within(run, "the answer", answer.saturating_sub(ready).as_secs_f64() * 1e3, ms)
}

fn refused(run: &Run, args: &mut Args) -> Checked {
    let values: Vec<u64> = args.need("values")?;
    for connection in run.connections() {
        let asked = connection.dial.start["audio"]["frame_ms"].as_u64().unwrap_or(20);
        let seen = connection.transcript.all();
        let ready = seen.iter().any(|s| s.is_event("session.ready", None));
        let told = seen.iter().any(|s| s.is_event("error", None));
        let must_refuse = values.contains(&asked);
        hard(ready != must_refuse && told == must_refuse, || {
            format!("{asked} ms: ready {ready}, error {told}")
        })?;
    }
    Ok(())
}

async fn texts(run: &Run, args: &mut Args) -> Checked {
    let text = args.take::<String>("text")?.unwrap_or_default();
    if args.name == "engine_text_contains" {
        args.take::<String>("ctx")?;
        let all = run.server()?.spoken(None).await?;
        let all: Vec<String> = all.iter().map(|s| s.text()).collect();
        return hard(all.iter().any(|t| t.contains(&text)), || {
            format!("{text:?} is not in {all:?}")
        });
    }
    for (connection, ctx) in targets(run, args)? {
        let spoken = run.spoken(&connection, &ctx).await?.text();
        let sent = connection.contexts().get(&ctx).map(|c| c.text.clone()).unwrap_or_default();
        match &*args.name {
            "engine_text_equals" => hard(words(&spoken) == words(&text), || format!("{spoken:?}"))?,
            "engine_text_complete" => {
                let (spoken, sent) = (words(&spoken), words(&sent));
                hard(spoken == sent, || format!("{} of {} characters", spoken.len(), sent.len()))?;
            }
            _ => {
                let dropped = spoken.len() < sent.trim().len();
                hard(dropped, || "all of the text was spoken".to_owned())?;
            }
        }
    }
    Ok(())
}

fn reported(run: &Run, args: &mut Args) -> Checked {
    for target in targets(run, args)? {
        let (connection, ctx) = &target;
        let seen = connection.transcript.all();
        let at = place(&seen, "context.cancelled", ctx);
        let answer = at.and_then(|at| seen[at].event());
        let Some((_, answer)) = answer else {
            return hard(false, || format!("no answer for {ctx}"));
        };
        let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
        if args.name == "reported_chars_le_text" {
            let sent = connection.contexts().get(ctx).map(|c| c.text.clone()).unwrap_or_default();
            let heard = answer["heard"]["text"].as_str().unwrap_or("\u{fffd}");
            let chars = number(&answer["heard"]["text_to"]);
            let fits = sent.starts_with(heard) && chars <= sent.chars().count() as u64;
            hard(fits, || format!("{chars} characters, {heard:?}"))?;
            continue;
        }
        let frames = seen.iter().filter_map(|s| s.audio_of(ctx));
        let bytes = connection.dial.format.sample_bytes().unwrap_or(1) as u64;
        let arrived = frames.map(|f| f.pos + f.payload.len() as u64 / bytes).max().unwrap_or(0);
        let (sent, played) = (number(&answer["sent"]), number(&answer["played"]));
        hard(played <= sent && sent <= arrived, || {
            format!("played {played}, sent {sent}, arrived {arrived}")
        })?;
    }
    Ok(())
}

/// Words of a context: raw text from and to, position from and to.
fn word_times(seen: &[Seen], ctx: &str) -> Vec<[u64; 4]> {
    let commits = seen.iter().filter(|s| s.is_event("commit", Some(ctx)));
    let words =
        commits.filter_map(|s| s.event()).filter_map(|(_, e)| e["words"].as_array().cloned());
    words.flatten().filter_map(|w| serde_json::from_value(w).ok()).collect()
}

async fn timed(run: &Run, args: &mut Args) -> Checked {
    let targets: Vec<Target> = match args.name == "join_words_equals_reference_text" {
        true => vec![(run.connection(None, Some("A"))?, "A".to_owned())],
        false => targets(run, args)?,
    };
    for (connection, ctx) in targets {
        let seen = connection.transcript.all();
        let words = word_times(&seen, &ctx);
        hard(!words.is_empty(), || format!("{ctx} has no words"))?;
        let text = connection.contexts().get(&ctx).map(|c| c.text.clone()).unwrap_or_default();
        match &*args.name {
            "timestamps_monotonic" => {
                let rises = words.windows(2).all(|w| w[0][3] <= w[1][2] && w[0][1] <= w[1][0]);
                let whole = words.iter().all(|w| w[0] < w[1] && w[2] <= w[3]);
                hard(rises && whole, || format!("{words:?}"))?;
            }
            "offset_equals_samples" => {
                let spoken = run.spoken(&connection, &ctx).await?;
                chunk_offsets(
                    &seen,
                    &ctx,
                    &words,
                    &spoken.chunks.iter().map(|c| c.samples).collect::<Vec<_>>(),
                )?;
            }
            _ => joined(&text, &words)?,
        }
    }
    Ok(())
}

/// No word of a chunk of text lies on the other side of where its chunk of sound begins.
fn chunk_offsets(seen: &[Seen], ctx: &str, words: &[[u64; 4]], samples: &[u64]) -> Checked {
    let said = seen.iter().filter_map(|s| match &s.what {
        What::Sent(m) if m["type"] == "text" && m["ctx"] == ctx => m["text"].as_str(),
        _ => None,
    });
    let (mut chars, mut offset) = (0, 0);
    for (text, samples) in said.zip(samples) {
        let end = chars + text.chars().count() as u64;
        let own = words.iter().filter(|w| (chars..end).contains(&w[0]));
        let outside = own.clone().find(|w| w[2] < offset || w[3] > offset + samples);
        hard(outside.is_none() && own.count() > 0, || {
            format!("{outside:?} is not in {offset}..{}", offset + samples)
        })?;
        (chars, offset) = (end, offset + samples);
    }
    Ok(())
}

/// Words and what lies between them are the text again, and only blanks lie between them.
fn joined(text: &str, words: &[[u64; 4]]) -> Checked {
    let text: Vec<char> = text.chars().collect();
    let mut at = 0;
    for word in words.iter().map(|w| w[0] as usize..w[1] as usize) {
        let blank =
            text.get(at..word.start).is_some_and(|gap| gap.iter().all(|c| c.is_whitespace()));
        hard(blank, || format!("between {at} and {}", word.start))?;
        at = word.end;
    }
    let rest = text.get(at..).is_some_and(|gap| gap.iter().all(|c| c.is_whitespace()));
    hard(rest, || format!("the words end at {at} of {}", text.len()))
}
