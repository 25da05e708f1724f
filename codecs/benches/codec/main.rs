//! How fast do the neural codecs run at release shapes, against the plain matrix product of the same machine, and does
//! a commit of a streamed passage cost the same however much is spoken already?
//!
//! A codec is almost only multiply-adds, so its speed in GMAC/s beside that of one big square product says how much
//! the layers around the products cost. The aim is 60 %. Weights are random; one thread; each line is the best of
//! several runs, by the time that the thread was on a core, since benches share their machine. The product is timed
//! anew before every workload; it has no form for AVX-512, so that a share can be above 100 %.
//!
//! ```text
//! cargo bench -p dovecote-codecs --bench codec [-- PART_OF_A_NAME]
//! ```

mod dualcodec;
mod qwen3_omni;
mod reconstruct;
mod speech;
mod vibevoice;
mod weights;

use std::time::Duration;

/// Share of the plain product that a codec should reach.
const AIM: f64 = 0.6;
const RUNS: usize = 5;
const PRODUCT_SIZE: usize = 1024;
/// The system counts time on a core in ticks of 4 ms: a run must be much longer.
const PRODUCTS: usize = 12;

/// One thing to time.
pub(crate) struct Workload {
    /// What a line of the report begins with.
    pub(crate) name: String,
    /// Seconds of sound that a run is about.
    pub(crate) audio_s: f64,
    /// Multiply-adds of a run.
    pub(crate) macs: f64,
    /// One run.
    pub(crate) run: Box<dyn FnMut()>,
}

/// Loads weights and hands back what is to be timed.
type Maker = fn() -> Workload;

fn main() {
    // cargo itself passes `--bench`.
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let makers: [(&str, Maker); 16] = [
        ("dualcodec", dualcodec::decode_window),
        ("vibevoice encode", vibevoice::encode_window),
        ("vibevoice decode", vibevoice::decode_piece),
        ("reconstruction commit", reconstruct::commit),
        ("qwen3-omni tower", qwen3_omni::encode_window),
        ("xcodec frame", speech::xcodec_frame),
        ("xcodec streams", speech::xcodec_together),
        ("xcodec clip", speech::xcodec_clip),
        ("dac frame", speech::dac_frame),
        ("dac streams", speech::dac_together),
        ("dac clip", speech::dac_clip),
        ("dac encode", speech::dac_encode),
        ("seanet frame", speech::seanet_frame),
        ("seanet streams", speech::seanet_together),
        ("seanet clip", speech::seanet_clip),
        ("seanet encode", speech::seanet_encode),
    ];
    println!("{:<44} {:>9} {:>9} {:>9} {:>7}", "one thread", "GMAC/s", "product", "share", "RTF");
    for (name, make) in makers {
        if name.contains(&filter) {
            report(make());
        }
    }
    if "reconstruction growth".contains(&filter) {
        reconstruct::report_growth();
    }
}

fn report(mut workload: Workload) {
    (workload.run)();
    let (mut product, mut best) = (0.0_f64, 0.0_f64);
    for _ in 0..RUNS {
        product = product.max(product_speed());
        best = best.max(workload.macs / seconds_of(&mut workload.run));
    }
    let share = best / product;
    println!(
        "{:<44} {:>9.1} {:>9.1} {:>7.0} % {:>7.3} {}",
        workload.name,
        best / 1e9,
        product / 1e9,
        100.0 * share,
        workload.macs / best / workload.audio_s,
        if share >= AIM { "" } else { "  below the aim of 60 %" }
    );
}

/// Multiply-adds a second of one big square product.
#[expect(unsafe_code, reason = "the matrix product of the gemm crate takes raw pointers")]
fn product_speed() -> f64 {
    const N: usize = PRODUCT_SIZE;
    let (a, b) = (vec![0.5_f32; N * N], vec![0.25_f32; N * N]);
    let mut c = vec![0.0_f32; N * N];
    let mut product = || {
        // SAFETY: the three matrices are N by N, as told to the product.
        unsafe {
            gemm::gemm(
                N,
                N,
                N,
                c.as_mut_ptr(),
                /* dst_cs */ 1,
                /* dst_rs */ N as isize,
                false,
                a.as_ptr(),
                /* lhs_cs */ 1,
                /* lhs_rs */ N as isize,
                b.as_ptr(),
                /* rhs_cs */ 1,
                /* rhs_rs */ N as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    };
    let seconds = seconds_of(&mut || (0..PRODUCTS).for_each(|_| product()));
    std::hint::black_box(c);
    (PRODUCTS * N * N * N) as f64 / seconds
}

fn seconds_of(run: &mut dyn FnMut()) -> f64 {
    let start = time_on_core();
    run();
    (time_on_core() - start).as_secs_f64()
}

/// Time that this thread has been on a core; where the system does not tell, time on the wall.
#[expect(clippy::disallowed_methods, reason = "a bench is about time")]
fn time_on_core() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map_or_else(|| START.elapsed(), Duration::from_nanos)
}
