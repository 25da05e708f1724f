//! `dovecote fetch` against a server on this machine: whole, broken off, resumed, wrong, and not there at all.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail its test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};

use common::{dovecote, repository, run, stderr};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// What the server does to the next answers of a path, first things first.
type Faults = Arc<Mutex<Vec<(&'static str, Fault)>>>;

#[derive(Clone, Copy)]
enum Fault {
    /// Breaks off after so many bytes of the body.
    BreakOff(usize),
    /// Changes the first byte.
    Damage,
    /// Answers with a status.
    Status(u16),
    /// Sends everything, whatever was asked for.
    IgnoreRange,
}

/// A server of files, and what was asked of it.
struct Files {
    _runtime: Runtime,
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Files {
    fn serve(root: &Path, faults: &[(&'static str, Fault)]) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (root, faults) = (root.to_path_buf(), Arc::new(Mutex::new(faults.to_vec())));
        let log = asked.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, root.clone(), faults.clone(), log.clone()));
            }
        });
        Self { _runtime: runtime, url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: TcpStream,
    root: PathBuf,
    faults: Faults,
    log: Arc<Mutex<Vec<String>>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
    let range = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("range").then(|| value.to_owned())
    });
    let from: usize = range
        .as_deref()
        .map_or(0, |r| r.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap());
    log.lock().unwrap().push(if from > 0 { format!("{path} from {from}") } else { path.clone() });
    let fault = {
        let mut faults = faults.lock().unwrap();
        let at = faults.iter().position(|(of, _)| *of == path);
        at.map(|at| faults.remove(at).1)
    };
    if let Some(rest) = path.strip_prefix("dove/nano/resolve/") {
        // As the hub does, whose files lie elsewhere.
        let head = format!("HTTP/1.1 302 X\r\nLocation: /cdn/{rest}\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.write_all(head.as_bytes()).await;
        return;
    }
    let Ok(mut body) = fs::read(root.join(&path)) else {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
        return;
    };
    let total = body.len();
    let (mut status, mut sent, mut start) = (200, usize::MAX, 0);
    match fault {
        Some(Fault::Status(other)) => status = other,
        Some(Fault::Damage) => body[0] ^= 1,
        Some(Fault::BreakOff(bytes)) => sent = bytes,
        Some(Fault::IgnoreRange) | None => {}
    }
    let link = fs::read_to_string(root.join(format!("{path}.link")));
    let mut extra = link.map(|link| format!("Link: {link}\r\n")).unwrap_or_default();
    if from > 0 && !matches!(fault, Some(Fault::IgnoreRange)) && status == 200 {
        (status, start) = (206, from);
        extra += &format!("Content-Range: bytes {from}-{}/{total}\r\n", total - 1);
    }
    let length = total - start;
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{extra}Connection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(&body[start..total.min(start.saturating_add(sent))]).await;
}

/// The bundled voice, listed, in a folder of its own.
fn bundle() -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let from = entry.unwrap().path();
            let to = to.join(from.file_name().unwrap());
            if from.is_dir() {
                copy(&from, &to);
            } else {
                std::os::unix::fs::symlink(&from, to).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&repository("voices/nano"), folder.path());
    let listed = run(dovecote(folder.path()).args(["fetch", "--index", "."]));
    assert!(listed.status.success(), "{}", stderr(&listed));
    folder
}

fn fetch(url: &str, to: &Path) -> Output {
    run(dovecote(to).args(["fetch", url, "-o", "got"]))
}

fn is_whole(bundle: &Path, got: &Path) {
    for path in ["dovecote.json", "cb0/model.safetensors", "codec/model.safetensors", "NOTICE"] {
        assert_eq!(
            fs::read(bundle.join(path)).unwrap(),
            fs::read(got.join(path)).unwrap(),
            "{path}"
        );
    }
}

#[test]
fn a_bundle_comes_whole_and_what_is_there_is_not_fetched_again() {
    let (bundle, here) = (bundle(), tempfile::tempdir().unwrap());
    let server = Files::serve(bundle.path(), &[]);
    let fetched = fetch(&server.url, here.path());
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    assert!(stderr(&fetched).contains("nano: Apache-2.0"), "{}", stderr(&fetched));
    assert!(String::from_utf8_lossy(&fetched.stdout).contains("--bundle got"));
    is_whole(bundle.path(), &here.path().join("got"));

    let first = server.asked().len();
    fs::write(here.path().join("got/NOTICE"), "changed").unwrap();
    assert!(fetch(&server.url, here.path()).status.success());
    assert_eq!(server.asked()[first..], ["dovecote.files.json", "NOTICE"]);
    is_whole(bundle.path(), &here.path().join("got"));
}

#[test]
fn a_line_that_breaks_is_taken_up_where_it_broke() {
    let (bundle, here) = (bundle(), tempfile::tempdir().unwrap());
    let weights = "codec/model.safetensors";
    let faults = [
        (weights, Fault::BreakOff(1_000)),
        (weights, Fault::BreakOff(500)),
        ("cb1/config.json", Fault::Status(503)),
        // A server that knows no ranges sends all of it.
        ("cb2/model.safetensors", Fault::BreakOff(2_000)),
        ("cb2/model.safetensors", Fault::IgnoreRange),
    ];
    let server = Files::serve(bundle.path(), &faults);
    let fetched = fetch(&server.url, here.path());
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    is_whole(bundle.path(), &here.path().join("got"));
    let asked = server.asked();
    assert!(asked.contains(&format!("{weights} from 1000")), "{asked:?}");
    assert!(asked.contains(&format!("{weights} from 1500")), "{asked:?}");
}

#[test]
fn what_is_wrong_or_missing_is_told_and_not_kept() {
    let (bundle, here) = (bundle(), tempfile::tempdir().unwrap());
    let server = Files::serve(bundle.path(), &[("cb0/config.json", Fault::Damage)]);
    let fetched = fetch(&server.url, here.path());
    assert_eq!(fetched.status.code(), Some(1));
    assert!(stderr(&fetched).contains("cb0/config.json: SHA-256 is"), "{}", stderr(&fetched));
    assert!(!here.path().join("got/cb0/config.json").exists());
    // Another run begins anew, and the server is well again.
    assert!(fetch(&server.url, here.path()).status.success());

    let missing = fetch(&format!("{}/nothing", server.url), here.path());
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("nothing/dovecote.files.json: the server answers 404"));
}

#[test]
fn a_list_that_leads_out_of_the_folder_is_refused() {
    let (bundle, here) = (bundle(), tempfile::tempdir().unwrap());
    let list = bundle.path().join("dovecote.files.json");
    let text = fs::read_to_string(&list).unwrap().replace("\"NOTICE\"", "\"../NOTICE\"");
    fs::write(&list, text).unwrap();
    let server = Files::serve(bundle.path(), &[]);
    let fetched = fetch(&server.url, here.path());
    assert_eq!(fetched.status.code(), Some(1));
    assert!(stderr(&fetched).contains("\"../NOTICE\" does not stay"), "{}", stderr(&fetched));
    assert!(!here.path().join("NOTICE").exists() && !here.path().join("got").exists());
}

#[test]
fn without_a_server_it_says_so_and_a_name_needs_a_hub() {
    let here = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let offline = fetch(&format!("http://127.0.0.1:{port}/nano"), here.path());
    assert_eq!(offline.status.code(), Some(1));
    assert!(stderr(&offline).contains(&format!("127.0.0.1:{port}/nano")), "{}", stderr(&offline));
    let named = fetch("nano", here.path());
    assert_eq!(named.status.code(), Some(2));
    assert!(stderr(&named).contains("owner/name[@revision]"), "{}", stderr(&named));

    let hub = format!("http://127.0.0.1:{port}");
    let offline = run(dovecote(here.path()).env("DOVECOTE_HUB", &hub).args([
        "fetch",
        "dove/nano",
        "-o",
        "got",
    ]));
    assert_eq!(offline.status.code(), Some(1));
    let asked = format!("{hub}/api/models/dove/nano/revision/main: cannot be reached: ");
    assert!(stderr(&offline).contains(&asked), "{}", stderr(&offline));
    assert!(!here.path().join("got").exists());
}

/// The commit that the hub's branch `v1` is at.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// Files that a hub keeps apart, with their SHA-256; the others have git's checksum.
const LARGE_BYTES: u64 = 10_000;

fn git_object_id(bytes: &[u8]) -> String {
    use sha1::{Digest, Sha1};
    let mut hash = Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// A folder whose files are the answers of a hub that has the bundle as `dove/nano`. The list comes in two pages, and shows
/// the links of the hub that this one mirrors.
fn hub(bundle: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let list = fs::read_to_string(bundle.join("dovecote.files.json")).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let item = |entry: &Value| {
        let (path, bytes) = (entry["path"].as_str().unwrap(), entry["bytes"].as_u64().unwrap());
        let mut item = json!({"type": "file", "path": path, "size": bytes, "oid": COMMIT});
        if bytes >= LARGE_BYTES {
            let sha256 = &entry["sha256"];
            item["lfs"] = json!({"oid": sha256, "size": bytes, "pointerSize": 132});
        } else {
            item["oid"] = git_object_id(&fs::read(bundle.join(path)).unwrap()).into();
        }
        item
    };
    let mut items: Vec<Value> = list["files"].as_array().unwrap().iter().map(item).collect();
    items.push(json!({"type": "file", "path": ".gitattributes", "size": 1, "oid": COMMIT}));
    items.push(json!({"type": "directory", "path": "cb0", "size": 0, "oid": COMMIT}));
    let (first, second) = items.split_at(items.len() / 2);
    let api = root.join("api/models/dove/nano");
    fs::create_dir_all(api.join("revision")).unwrap();
    fs::create_dir_all(api.join("tree")).unwrap();
    let revision = json!({"id": "dove/nano", "sha": COMMIT, "cardData": {"license": "mit"}});
    let page = |cursor: &str| api.join(format!("tree/{COMMIT}?recursive=true{cursor}"));
    let link = format!(
        "<https://hub.example/api/models/dove/nano/tree/{COMMIT}?recursive=true&cursor=2>; rel=\"next\""
    );
    fs::write(api.join("revision/v1"), revision.to_string()).unwrap();
    fs::write(page(""), json!(first).to_string()).unwrap();
    fs::write(page(".link"), link).unwrap();
    fs::write(page("&cursor=2"), json!(second).to_string()).unwrap();
    fs::create_dir(root.join("cdn")).unwrap();
    std::os::unix::fs::symlink(bundle, root.join("cdn").join(COMMIT)).unwrap();
    folder
}

#[test]
fn a_name_is_fetched_from_a_hub_at_one_commit() {
    let (bundle, here) = (bundle(), tempfile::tempdir().unwrap());
    let answers = hub(bundle.path());
    let (small, large) = ("cb0/config.json", "codec/model.safetensors");
    let cdn = |path: &str| &*format!("cdn/{COMMIT}/{path}").leak();
    let faults = [(cdn(large), Fault::BreakOff(1_000)), (cdn(small), Fault::Damage)];
    let server = Files::serve(answers.path(), &faults);
    let fetch = |name: &str| {
        run(dovecote(here.path()).args(["fetch", name, "--hub", &server.url, "-o", "got"]))
    };
    let damaged = fetch("dove/nano@v1");
    assert_eq!(damaged.status.code(), Some(1));
    let says = format!("{small}: the object id is ");
    assert!(stderr(&damaged).contains(&says), "{}", stderr(&damaged));

    let fetched = fetch("dove/nano@v1");
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    let told = stderr(&fetched);
    assert!(
        told.contains("dove/nano@01234567: mit") && told.contains("nano: Apache-2.0"),
        "{told}"
    );
    is_whole(bundle.path(), &here.path().join("got"));
    assert!(!here.path().join("got/.gitattributes").exists());
    assert!(server.asked().contains(&format!("{} from 1000", cdn(large))), "{:?}", server.asked());

    let missing = fetch("dove/nano@v2");
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("no dove/nano at v2"), "{}", stderr(&missing));
}
