//! Whether the sound that arrived is the sound that was made: all of it, once, in order, in the format that was asked for.

use codecs::opus::packet_duration;
use codecs::wav::Wav;
use serde_json::Value;

use super::{Checked, Miss, Target, count, hard, place, targets, within};
use crate::cases::session::args::Args;
use crate::cases::session::client::Connection;
use crate::cases::session::format::Format;
use crate::cases::session::run::Run;
use crate::cases::session::server::{LOOK, Spoken};
use crate::cases::session::sound;
use crate::cases::session::transcript::{Audio, Seen, What};
use crate::cases::session::vendor::{Client, State};

/// Delay of the Opus encoder, in samples at 48 kHz: its look-ahead of 6.5 ms.
const OPUS_PRE_SKIP: u64 = 312;
/// Amplitude of each of the stub's tones is 0.25; half of it is heard clearly, a tenth is leakage of others.
const HEARD: f64 = 0.125;
/// Quieter than this is silence after Opus.
const SILENT: f32 = 1e-4;

pub(super) async fn check(run: &Run, args: &mut Args) -> Result<bool, Miss> {
    match &*args.name.clone() {
        "audio_complete" | "audio_complete_all" | "samples_equal_engine" => {
            for target in targets(run, args)? {
                complete(run, &target).await?;
            }
        }
        "audio_complete_or_error" | "audio_complete_or_closed" => {
            for target in targets(run, args)? {
                complete_or_told(run, &target).await?;
            }
        }
        "accepted_complete" => {
            for target in targets(run, args)? {
                let is_vendor = target.0.dial.vendor.is_some();
                let told = |kind| target.0.transcript.with(|s| place(s, kind, &target.1).is_some());
                let is_accepted = if is_vendor { !told("error") } else { told("context.opened") };
                if is_accepted {
                    complete(run, &target).await?;
                }
            }
        }
        "seq_monotonic" => {
            args.need::<String>("per")?;
            each_in_order(run, args)?;
        }
        "no_duplicate_audio" | "no_cross_generation_audio" => each_in_order(run, args)?,
        "audio_bytes" => {
            let equals: usize = args.need("equals")?;
            let bytes: usize = frames_of(run, args)?.iter().map(|f| f.payload.len()).sum();
            hard(bytes == equals, || format!("{bytes} instead of {equals}"))?;
        }
        "message_bytes_multiple_of" => {
            let n: usize = args.need("n")?;
            let odd = frames_of(run, args)?.iter().map(|f| f.payload.len()).find(|l| l % n != 0);
            hard(odd.is_none(), || format!("a message has {odd:?} bytes"))?;
        }
        "chunk_order" => chunk_order(run, args).await?,
        "samples_carry_own_marker" => {
            args.need::<bool>("all")?;
            own_markers(run, args).await?;
        }
        "frames_chunk" => {
            let max: usize = args.need("max")?;
            for spoken in run.server()?.spoken(None).await? {
                let frames = spoken.chunks.iter().map(|c| c.frames).max().unwrap_or(0);
                hard(frames <= max, || format!("a chunk has {frames} frames"))?;
            }
        }
        "pcm_samples" | "samples" | "bytes_total_preserved" => counted(run, args).await?,
        "opus_declared_samples" => declared(run, args.need("equals")?).await?,
        "opus_packets" | "no_tiny_packets" | "every_packet_duration_ms_equals" => {
            packets(run, args).await?
        }
        "no_zero_run_ms" | "tone_hz" | "duration_ms" | "max_error_vs_oneshot_db" => {
            listened(run, args)?
        }
        "wav_header" | "ogg_preskip" | "decoded_samples_48k" => files(run, args)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Frames of a context, in the order in which they came.
fn frames(seen: &[Seen], ctx: &str) -> Vec<Audio> {
    seen.iter().filter_map(|s| s.audio_of(ctx)).cloned().collect()
}

fn frames_of(run: &Run, args: &mut Args) -> anyhow::Result<Vec<Audio>> {
    let targets = targets(run, args)?;
    Ok(targets.iter().flat_map(|(c, ctx)| c.transcript.with(|seen| frames(seen, ctx))).collect())
}

/// Samples of a packet on the media clock.
fn duration(format: &Format, packet: &[u8]) -> u64 {
    match format.sample_bytes() {
        Some(bytes) => (packet.len() / bytes) as u64,
        None => packet_duration(packet).unwrap_or(0),
    }
}

/// Numbers rise by one and positions join; gives the end of the last frame.
fn in_order(format: &Format, frames: &[Audio]) -> Result<u64, Miss> {
    let mut end = 0;
    for (number, frame) in frames.iter().enumerate() {
        let (seq, pos) = (frame.seq as usize, frame.pos);
        hard(seq == number && pos == end, || {
            format!("frame {seq} at {pos} instead of {number} at {end}")
        })?;
        end += duration(format, &frame.payload);
    }
    Ok(end)
}

fn each_in_order(run: &Run, args: &mut Args) -> Checked {
    for (connection, ctx) in targets(run, args)? {
        let frames = connection.transcript.with(|seen| frames(seen, &ctx));
        for turn in frames.chunk_by(|a, b| a.turn == b.turn) {
            in_order(&connection.dial.format, turn)?;
        }
    }
    Ok(())
}

/// Waits for the end of a context, as a client would that has asked for it.
async fn settled((connection, ctx): &Target) -> Checked {
    if connection.dial.vendor.is_some() {
        let waited = tokio::time::timeout(LOOK * 3_000, async {
            while !is_over(connection, ctx) && !connection.is_gone() {
                tokio::time::sleep(LOOK).await;
            }
        });
        return hard(waited.await.is_ok(), || format!("{ctx} does not end"));
    }
    let over = |seen: &[Seen]| {
        let ends = ["context.done", "context.cancelled", "error"];
        ends.iter().any(|kind| place(seen, kind, ctx).is_some()).then_some(())
    };
    let waited = tokio::time::timeout(LOOK * 3_000, connection.transcript.until(over)).await;
    hard(waited.is_ok() || connection.is_gone(), || format!("{ctx} does not end"))
}

/// Whether the server has said its last word about every turn of a name, as another vendor's client knows it.
fn is_over(connection: &Connection, ctx: &str) -> bool {
    let all_over = |client: &Client| client.of(ctx).all(|(_, turn)| turn.state.is_over());
    connection.with_client(all_over).unwrap_or(true)
}

/// As [`complete`], on another vendor's surface: of every turn of the name that the client has not stopped.
async fn complete_turns(run: &Run, (connection, ctx): &Target) -> Checked {
    let seen = connection.transcript.all();
    let known = connection.with_client(|client| {
        let known = client.known_to_the_engine().into_iter().enumerate();
        let known = known.map(|(place, at)| (place, at, client.turns[at].clone()));
        known.filter(|(_, _, turn)| turn.ctx == *ctx).collect::<Vec<_>>()
    });
    let spoken = run.spoken_on(connection).await?;
    let stopped = |state: State| matches!(state, State::Cancelled | State::Stopped);
    let mut whole = 0;
    for (place, at, turn) in known.unwrap_or_default() {
        if stopped(turn.state) {
            continue;
        }
        hard(turn.state == State::Done, || format!("{ctx} is {:?}", turn.state))?;
        let frames = frames(&seen, ctx).into_iter().filter(|frame| frame.turn == at);
        let frames: Vec<Audio> = frames.collect();
        let end = in_order(&connection.dial.format, &frames)?;
        let made = spoken.get(place).map_or(0, |spoken| spoken.samples);
        let rate = connection.dial.format.rate();
        let expected = made * u64::from(rate) / 24_000;
        let exact = end.abs_diff(expected) <= u64::from(rate != 24_000);
        hard(exact, || format!("{ctx}: {end} samples arrived, {expected} were made"))?;
        whole += 1;
    }
    let dones = count(&seen, "context.done", ctx);
    hard(whole > 0 && dones == whole, || format!("{ctx} has {dones} ends, {whole} turns"))?;
    let end = seen.iter().rposition(|s| s.is_event("context.done", Some(ctx))).unwrap_or(0);
    let late = seen[end..].iter().any(|s| s.audio_of(ctx).is_some());
    hard(!late, || format!("{ctx} has sound behind its end"))?;
    let odd = seen.iter().find(|s| matches!(s.what, What::Odd(_)));
    hard(odd.is_none(), || format!("{:?}", odd.map(|s| &s.what)))
}

/// Of turns that were stopped nothing is heard in what came behind; of those that were spoken, each in its own sound.
pub(super) async fn no_old_sound(run: &Run, connection: &Connection, behind: &[Seen]) -> Checked {
    let known = connection.with_client(|client| {
        let known = client.known_to_the_engine().into_iter();
        known.map(|at| (at, client.turns[at].state)).collect::<Vec<_>>()
    });
    let known = known.unwrap_or_default();
    let spoken = run.spoken_on(connection).await?;
    hard(spoken.len() == known.len(), || "the engine knows other turns".to_owned())?;
    let format = &connection.dial.format;
    let mut heard = 0;
    for ((at, state), own) in known.iter().zip(&spoken) {
        let frames = behind.iter().filter_map(|s| match &s.what {
            What::Audio(audio) if audio.turn == *at => Some(&*audio.payload),
            _ => None,
        });
        let frames: Vec<&[u8]> = frames.collect();
        let was_stopped = *state == State::Stopped;
        hard(!was_stopped || frames.is_empty(), || format!("{} old frames", frames.len()))?;
        let sound = format.decode(&frames)?;
        for ((_, state), other) in known.iter().zip(&spoken) {
            let share = sound::share(&sound, format.rate(), other.context_hz);
            let is_old = *state == State::Stopped && other.number != own.number;
            hard(!is_old || share < HEARD, || format!("{share:.3} of {} Hz", other.context_hz))?;
        }
        let share = sound::share(&sound, format.rate(), own.context_hz);
        hard(frames.is_empty() || share > HEARD, || format!("{share:.3} of its own sound"))?;
        heard += frames.len();
    }
    hard(heard > 0, || "no new sound".to_owned())
}

/// All that the engine made came, in order, once, and one end after it.
async fn complete(run: &Run, target: &Target) -> Checked {
    settled(target).await?;
    if target.0.dial.vendor.is_some() {
        return complete_turns(run, target).await;
    }
    let (connection, ctx) = target;
    let seen = connection.transcript.all();
    let frames = frames(&seen, ctx);
    let end = in_order(&connection.dial.format, &frames)?;
    let dones = count(&seen, "context.done", ctx);
    hard(dones == 1, || format!("{ctx} has {dones} ends: {:?}", told(&seen, ctx)))?;
    let done = place(&seen, "context.done", ctx).unwrap_or(0);
    let late = seen[done..].iter().any(|s| s.audio_of(ctx).is_some());
    hard(!late, || format!("{ctx} has sound behind its end"))?;
    let samples = seen[done].event().and_then(|(_, e)| e["samples"].as_u64()).unwrap_or(0);
    let spoken = run.spoken(connection, ctx).await?;
    let format = &connection.dial.format;
    if format.is_opus() {
        let expected = OPUS_PRE_SKIP + 2 * spoken.samples;
        hard(samples == expected, || format!("{samples} samples instead of {expected}"))?;
        hard(end >= samples, || format!("{end} samples in packets, {samples} declared"))
    } else {
        let expected = spoken.samples * u64::from(format.rate()) / 24_000;
        let exact = end == samples && end.abs_diff(expected) <= u64::from(format.rate() != 24_000);
        let made = format!("{end} arrived, {samples} declared, {expected} made");
        hard(exact, || format!("{ctx}: {made}"))
    }
}

/// What the server said of a context, in short.
fn told(seen: &[Seen], ctx: &str) -> Vec<String> {
    let about = seen.iter().filter_map(|s| s.event()).filter(|(_, e)| e["ctx"] == ctx);
    about.map(|(kind, e)| format!("{kind} {}", e["code"].as_str().unwrap_or_default())).collect()
}

async fn complete_or_told(run: &Run, target: &Target) -> Checked {
    settled(target).await?;
    let (connection, ctx) = target;
    let refused = connection.transcript.with(|seen| place(seen, "error", ctx).is_some());
    if refused || connection.is_gone() {
        return Ok(());
    }
    complete(run, target).await
}

pub(super) fn decoded(connection: &Connection, ctx: &str) -> anyhow::Result<Vec<f32>> {
    let frames = connection.transcript.with(|seen| frames(seen, ctx));
    let packets: Vec<&[u8]> = frames.iter().map(|f| &*f.payload).collect();
    connection.dial.format.decode(&packets)
}

async fn chunk_order(run: &Run, args: &mut Args) -> Checked {
    let equals: Vec<usize> = args.need("equals")?;
    for (connection, ctx) in targets(run, args)? {
        let spoken = run.spoken(&connection, &ctx).await?;
        let sound = decoded(&connection, &ctx)?;
        let mut rest = &sound[..];
        let mut heard = Vec::new();
        for chunk in &spoken.chunks {
            let (now, later) = rest.split_at((chunk.samples as usize).min(rest.len()));
            rest = later;
            let share = |hz: f64| sound::share(now, connection.dial.format.rate(), hz);
            let all = spoken.chunks.iter().map(|c| share(c.chunk_hz)).enumerate();
            heard.extend(all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(chunk, _)| chunk));
        }
        hard(heard == equals, || format!("heard {heard:?}"))?;
    }
    Ok(())
}

async fn own_markers(run: &Run, args: &mut Args) -> Checked {
    let mut all: Vec<(Target, Spoken)> = Vec::new();
    for target in targets(run, args)? {
        let spoken = run.spoken(&target.0, &target.1).await?;
        all.push((target, spoken));
    }
    for ((connection, ctx), spoken) in &all {
        let sound = decoded(connection, ctx)?;
        for (_, other) in &all {
            let share = sound::share(&sound, connection.dial.format.rate(), other.context_hz);
            let is_own = other.number == spoken.number;
            hard((share > HEARD) == is_own, || {
                format!("{} hears {share:.3} of {} Hz", connection.dial.name, other.context_hz)
            })?;
        }
    }
    Ok(())
}

/// A text without the blanks and the full stop that the front end may change.
pub(super) fn words(text: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").trim_end_matches('.').to_owned()
}

async fn counted(run: &Run, args: &mut Args) -> Checked {
    for (connection, ctx) in targets(run, args)? {
        let frames = connection.transcript.with(|seen| frames(seen, &ctx));
        let samples: u64 =
            frames.iter().map(|f| duration(&connection.dial.format, &f.payload)).sum();
        let (expected, tolerance) = match &*args.name {
            "bytes_total_preserved" => (run.spoken(&connection, &ctx).await?.samples, 0),
            _ => (args.need("equals")?, args.take("tol")?.unwrap_or(0)),
        };
        let near = samples.abs_diff(expected) <= tolerance;
        hard(near, || format!("{samples} samples instead of {expected}"))?;
    }
    Ok(())
}

/// The same text once more as Opus: its end event tells the true length.
async fn declared(run: &Run, equals: u64) -> Checked {
    let steps = serde_json::json!([
        {"do": "connect", "conn": "declared", "surface": "native", "format": "opus"},
        {"do": "text", "conn": "declared", "ctx": "D", "text": "Hi."},
        {"do": "end", "conn": "declared", "ctx": "D"},
        {"do": "wait_for", "conn": "declared", "event": "done", "ctx": "D"}
    ]);
    crate::cases::session::steps::steps(run, steps.as_array().map_or(&[], |s| s)).await?;
    let connection = run.connection(Some("declared"), None)?;
    let samples = connection.transcript.with(|seen| {
        let done = place(seen, "context.done", "D")?;
        seen[done].event().and_then(|(_, event)| event["samples"].as_u64())
    });
    let samples = samples.and_then(|s| s.checked_sub(OPUS_PRE_SKIP)).map(|s| s / 2);
    hard(samples == Some(equals), || format!("{samples:?} instead of {equals}"))
}

async fn packets(run: &Run, args: &mut Args) -> Checked {
    let limits = (args.take::<usize>("min")?, args.take::<usize>("max")?);
    let tiny = args.take::<usize>("max_dtx")?;
    args.take::<String>("var")?;
    for target in targets(run, args)? {
        let (connection, ctx) = &target;
        if !connection
            .transcript
            .with(|seen| seen.iter().any(|s| s.is_event("session.ready", None)))
        {
            continue;
        }
        settled(&target).await?;
        let frames = connection.transcript.with(|seen| frames(seen, ctx));
        match &*args.name {
            "opus_packets" => {
                let n = frames.len();
                let fits =
                    limits.0.is_none_or(|min| n >= min) && limits.1.is_none_or(|max| n <= max);
                hard(fits, || format!("{n} packets"))?;
            }
            "no_tiny_packets" => {
                let n = frames.iter().filter(|f| f.payload.len() <= 2).count();
                hard(n <= tiny.unwrap_or(0), || format!("{n} packets without sound"))?;
            }
            _ => {
                let ms = connection.dial.start["audio"]["frame_ms"].as_u64().unwrap_or(20);
                let odd = frames.iter().map(|f| duration(&connection.dial.format, &f.payload));
                let odd = odd.filter(|d| *d != ms * 48).collect::<Vec<_>>();
                hard(odd.is_empty() && !frames.is_empty(), || format!("{ms} ms: {odd:?}"))?;
            }
        }
    }
    Ok(())
}

/// Every sound of the case, over both surfaces, with its rate and what is only the encoder's delay or padding cut away.
fn sounds(run: &Run) -> anyhow::Result<Vec<(String, Vec<f32>, u32)>> {
    let mut sounds = Vec::new();
    for connection in run.connections() {
        let names: Vec<String> = connection.contexts().keys().cloned().collect();
        for ctx in names {
            let mut sound = decoded(&connection, &ctx)?;
            let format = &connection.dial.format;
            if format.is_opus() {
                let samples = connection.transcript.with(|seen| {
                    let done = place(seen, "context.done", &ctx)?;
                    seen[done].event().and_then(|(_, event)| event["samples"].as_u64())
                });
                sound.truncate(samples.unwrap_or(0) as usize);
                sound.drain(..(OPUS_PRE_SKIP as usize).min(sound.len()));
            }
            sounds.push((format!("{:?}", format), sound, format.rate()));
        }
    }
    for speech in run.left().speeches.iter() {
        let answer = speech.answer.as_ref().map(|a| a.body.clone()).unwrap_or_default();
        let (sound, rate) = speech.format.decode_file(&answer)?;
        sounds.push((format!("{:?}", speech.format), sound, rate));
    }
    Ok(sounds)
}

fn listened(run: &Run, args: &mut Args) -> Checked {
    let (equals, tolerance) =
        (args.take::<f64>("equals")?, args.take::<f64>("tol")?.unwrap_or(0.0));
    let max = args.take::<f64>("max")?.unwrap_or(0.0);
    args.take::<bool>("inside")?;
    let scripted = run.left().scripts.last().and_then(|s: &Value| s["tone_hz"].as_f64());
    for (name, sound, rate) in sounds(run)? {
        let edge = (rate / 50) as usize;
        let inside = sound.get(edge..sound.len().saturating_sub(edge)).unwrap_or_default();
        let ms = sound.len() as f64 * 1_000.0 / f64::from(rate);
        match &*args.name {
            "tone_hz" => {
                let around = equals.unwrap_or(0.0);
                let heard = sound::loudest_near(&sound, rate, around);
                let loud = sound::share(inside, rate, heard) > HEARD;
                hard(loud && (heard - around).abs() <= tolerance, || {
                    format!("{name}: {heard} Hz")
                })?;
            }
            "duration_ms" => {
                let near = (ms - equals.unwrap_or(0.0)).abs() <= tolerance;
                hard(near, || format!("{name}: {ms} ms"))?;
            }
            "no_zero_run_ms" => {
                let silent =
                    sound::longest_silence(inside, SILENT) as f64 * 1_000.0 / f64::from(rate);
                hard(silent <= max, || format!("{name}: {silent} ms of silence"))?;
            }
            _ => {
                let error = sound::error_from_tone_db(inside, rate, scripted.unwrap_or(440.0));
                hard(error <= max, || format!("{name}: {error:.1} dB"))?;
            }
        }
    }
    Ok(())
}

fn files(run: &Run, args: &mut Args) -> Checked {
    let left = run.left();
    let spoken = left.speeches.last().and_then(|s| s.answer.as_ref());
    let answer = spoken.or(left.answers.last().map(|(_, answer)| answer));
    let file = answer.map(|a| a.body.clone()).unwrap_or_default();
    args.rest();
    match &*args.name {
        "wav_header" => {
            let wav = Wav::read(&file).map_err(anyhow::Error::from)?;
            let size = file.get(4..8).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            let fits = size == u32::MAX || size as usize + 8 == file.len();
            hard(fits && wav.sample_rate == 24_000 && !wav.samples.is_empty(), || {
                format!("size {size} of {}, rate {}", file.len(), wav.sample_rate)
            })
        }
        name => {
            let ogg = codecs::ogg::OggOpus::read(&file).map_err(anyhow::Error::from)?;
            if name == "ogg_preskip" {
                let skip = u64::from(ogg.head.pre_skip);
                return hard(skip == OPUS_PRE_SKIP, || format!("pre-skip {skip}"));
            }
            let scripted = left.scripts.last().and_then(|s| s["samples"].as_u64()).unwrap_or(0);
            let decoded = ogg.decode(48_000, 10_000_000).map_err(anyhow::Error::from)?.len() as u64;
            hard(decoded == 2 * scripted, || {
                format!("{decoded} samples, {scripted} made at 24 kHz")
            })
        }
    }
}

/// Milliseconds of sound in frames.
pub(super) fn sounding_ms(format: &Format, frames: &[&Audio]) -> f64 {
    let samples: u64 = frames.iter().map(|f| duration(format, &f.payload)).sum();
    samples as f64 * 1_000.0 / f64::from(format.rate())
}

/// Sound between the cancel and its answer is within a limit.
pub(super) fn between(
    run: &Run,
    (connection, ctx): &Target,
    from: usize,
    to: usize,
    max: f64,
) -> Checked {
    let sent: Vec<Audio> = connection.transcript.with(|seen| frames(&seen[from..to], ctx));
    let ms = sounding_ms(&connection.dial.format, &sent.iter().collect::<Vec<_>>());
    within(run, "sound behind the cancel", ms, max)
}
