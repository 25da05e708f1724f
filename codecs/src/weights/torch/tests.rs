//! Archives and programs written by hand, byte for byte as torch writes them.

use super::*;

/// A stored zip archive with one entry after another, without checksums; beyond 4 GiB its numbers stand in wide fields, which
/// torch may use for small archives too.
fn archive(entries: &[(&str, &[u8])], method: u16, wide: bool) -> Vec<u8> {
    let (mut local, mut central) = (Vec::new(), Vec::new());
    let number = |value: u32| if wide { u32::MAX } else { value }.to_le_bytes();
    for (name, data) in entries {
        let offset = local.len() as u32;
        let size = data.len() as u32;
        local.extend(b"PK\x03\x04\0\0\0\0");
        local.extend(method.to_le_bytes());
        local.extend([0; 8]); // time, date, checksum
        local.extend([size.to_le_bytes(); 2].concat());
        local.extend((name.len() as u16).to_le_bytes());
        local.extend(3_u16.to_le_bytes());
        local.extend(name.as_bytes());
        local.extend(b"pad");
        local.extend(*data);
        let mut extra = b"XX\x02\0..".to_vec();
        if wide {
            extra.extend([1, 0, 24, 0]);
            for value in [size, size, offset] {
                extra.extend(u64::from(value).to_le_bytes());
            }
        }
        central.extend(b"PK\x01\x02\0\0\0\0\0\0");
        central.extend(method.to_le_bytes());
        central.extend([0; 8]);
        central.extend([number(size); 2].concat());
        central.extend((name.len() as u16).to_le_bytes());
        central.extend((extra.len() as u16).to_le_bytes());
        central.extend([0; 10]); // comment, disk, attributes
        central.extend(number(offset));
        central.extend(name.as_bytes());
        central.extend(extra);
    }
    let (start, size) = (local.len() as u32, central.len() as u32);
    let mut out = local;
    out.extend(central);
    if wide {
        let record = out.len() as u64;
        out.extend(b"PK\x06\x06");
        out.extend([0; 36]);
        out.extend(u64::from(size).to_le_bytes());
        out.extend(u64::from(start).to_le_bytes());
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend(record.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([(entries.len() as u16).to_le_bytes(); 2].concat());
    out.extend(number(size));
    out.extend(number(start));
    out.extend([0; 2]);
    out
}

/// The same through [`crate::weights::Weights`], which names file and tensor in every error.
#[test]
fn a_checkpoint_opens_like_any_weights() {
    use crate::weights::Weights;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.pth");
    let write = |values: &[f32]| {
        std::fs::write(&file, pack(&program(REBUILD, FLOATS, 3, 1), values)).unwrap();
        Weights::open(&file).map_err(|e| e.to_string())
    };
    let weights = write(&[9.0, 1.0, 2.0, 3.0]).unwrap();
    assert_eq!(weights.names().collect::<Vec<_>>(), ["mean"]);
    assert_eq!(weights.f32("mean", &[3]).unwrap(), [1.0, 2.0, 3.0]);
    let wrong = weights.f32("mean", &[4]).unwrap_err().to_string();
    assert!(wrong.contains("model.pth") && wrong.contains("`mean`"), "{wrong}");
    let broken = write(&[9.0, 1.0, f32::NAN, 3.0]).unwrap();
    let text = broken.f32("mean", &[3]).unwrap_err().to_string();
    assert!(text.contains("value 1 is NaN"), "{text}");
    let short = write(&[9.0]).err().unwrap();
    assert!(short.contains("model.pth: tensor `mean`") && short.contains("too short"), "{short}");
}

fn text(text: &str) -> Vec<u8> {
    [&b"X"[..], &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

/// What pushes a tensor of the numbers of a storage, from its second on.
fn tensor(function: &str, kind: &str, storage: &str, size: u8, stride: u8) -> Vec<u8> {
    let mut p = format!("c{function}\n((").into_bytes();
    p.extend(text("storage"));
    p.extend(format!("c{kind}\n").bytes());
    p.extend(text(storage));
    p.extend(text("cpu"));
    p.extend(b"K\x03tQK\x01");
    p.extend([b'K', size, 0x85, b'K', stride, 0x85, 0x89]);
    p.extend(b"ccollections\nOrderedDict\n)RtR");
    p
}

const REBUILD: &str = "torch._utils\n_rebuild_tensor_v2";
const FLOATS: &str = "torch\nFloatStorage";

/// `{"mean": tensor}`.
fn program(function: &str, kind: &str, size: u8, stride: u8) -> Vec<u8> {
    [
        b"\x80\x02}(".to_vec(),
        text("mean"),
        tensor(function, kind, "0", size, stride),
        b"u.".to_vec(),
    ]
    .concat()
}

fn pack(program: &[u8], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    archive(&[("s/data.pkl", program), ("s/data/0", &data)], 0, false)
}

fn floats(file: &[u8], found: &Found) -> Vec<f32> {
    let values = file[found.bytes.clone()].chunks_exact(4);
    values.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn a_dictionary_of_tensors_is_found_in_narrow_and_wide_archives() {
    for wide in [false, true] {
        let data: Vec<u8> =
            [9.0_f32, 1.0, -2.0, 3.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let plain = program(REBUILD, FLOATS, 3, 1);
        let file = archive(&[("s/data.pkl", &plain), ("s/data/0", &data)], 0, wide);
        let found = read(&file).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].name[..], found[0].dtype), ("mean", Dtype::F32));
        assert_eq!(
            (&found[0].shape[..], floats(&file, &found[0])),
            (&[3][..], vec![1.0, -2.0, 3.5])
        );
    }
}

/// A checkpoint of training: tensors in a dictionary of a dictionary, beside other things, one of them a parameter, one shared.
#[test]
fn tensors_in_dictionaries_get_dotted_names_and_all_else_is_passed_over() {
    let mut p = b"\x80\x02}q\0(".to_vec();
    p.extend(text("module"));
    // An ordered dictionary, with what is built into it behind its items.
    p.extend(b"ccollections\nOrderedDict\nq\x01)Rq\x02(");
    p.extend(text("a.weight"));
    p.extend(tensor(REBUILD, "torch\nBFloat16Storage", "1", 2, 1));
    p.extend(b"q\x03");
    p.extend(text("tied"));
    p.extend(b"h\x03");
    p.extend(text("b"));
    p.extend(b"ctorch._utils\n_rebuild_parameter\n(");
    p.extend(tensor(REBUILD, "torch\nHalfStorage", "1", 1, 1));
    p.extend(b"\x88ccollections\nOrderedDict\n)RtRu}");
    p.extend(text("_metadata"));
    p.extend(b"Nsb");
    for (key, value) in [
        ("epoch", &b"M\x10\x27"[..]),
        ("big", b"\x8a\x05\0\0\0\0\x80"),
        ("lr", b"G\x3f\xf0\0\0\0\0\0\0"),
        ("list", b"](K\x01K\x02e"),
        ("one", b"]K\x01a"),
        ("args", b"cargparse\nNamespace\n)\x81}X\x01\0\0\0xNsb"),
        ("state", b"cdeepspeed.runtime\nState\n)\x81}X\x01\0\0\0xNsb"),
        ("loss", b"cnumpy.core.multiarray\nscalar\n(NK\x01tR"),
        ("seen", b"ccollections\ndefaultdict\n(NtR(X\x01\0\0\0xNu"),
        ("size", b"ctorch\nSize\n(K\x01K\x02t\x85R"),
        ("itself", b"h\0"),
    ] {
        p.extend(text(key));
        p.extend(value);
    }
    p.extend(b"K\x07}u.");
    let file = archive(&[("x/y/data.pkl", &p), ("x/y/data/1", &[0; 6])], 0, false);
    let found = read(&file).unwrap();
    let names: Vec<_> = found.iter().map(|f| (&f.name[..], f.dtype, &f.shape[..])).collect();
    assert_eq!(
        names,
        [
            ("module.a.weight", Dtype::BF16, &[2][..]),
            ("module.b", Dtype::F16, &[1]),
            ("module.tied", Dtype::BF16, &[2]),
        ]
    );
    assert_eq!(found[0].bytes, found[2].bytes);
}

#[test]
fn whatever_is_not_such_a_dictionary_is_refused_with_a_reason() {
    let values = [9.0, 1.0, 2.0, 3.0];
    let plain = program(REBUILD, FLOATS, 3, 1);
    for (bytes, says) in [
        (pack(&program("os\nsystem", FLOATS, 3, 1), &values), "`os.system`"),
        (pack(&program(REBUILD, "torch\nComplexStorage", 3, 1), &values), "ComplexStorage"),
        (pack(&program(REBUILD, FLOATS, 3, 2), &values), "not contiguous"),
        (pack(&program("collections\nOrderedDict", FLOATS, 3, 1), &values), "in an unknown way"),
        (pack(b"\x80\x02]q\0.", &values), "not a dictionary"),
        (pack(b"\x80\x02K\x01.", &values), "not a dictionary"),
        (pack(b"\x80\x02}X\x01\0\0\0aK\x01s.", &values), "not a dictionary"),
        (pack(b"\x80\x02}X\x01\0\0\0as.", &values), "not on its stack"),
        (pack(b"\x80\x02i", &values), "0x69 is not allowed"),
        (pack(b"NR", &values), "list of arguments"),
        (pack(b"N)R", &values), "not a function"),
        (pack(b")Q", &values), "not a storage"),
        (pack(b"t", &values), "not on its stack"),
        (pack(b"h\x05", &values), "never stored"),
        (pack(b"X\xff\0\0\0", &values), "truncated"),
        (pack(b"X\xff\xff\xff\xff", &values), "truncated"),
        (pack(&vec![b'N'; (8 << 20) + 1], &values), "at most 8388608"),
        (archive(&[("s/data.pkl", &plain)], 8, false), "compressed"),
        (archive(&[("s/other", &plain)], 0, false), "no data.pkl"),
        (b"not a zip archive".to_vec(), "truncated or not a zip"),
    ] {
        let fault = read(&bytes).unwrap_err();
        assert!(fault.reason.contains(says), "{}, expected {says}", fault.reason);
    }
    let fault = read(&pack(&program(REBUILD, FLOATS, 4, 1), &values)).unwrap_err();
    assert_eq!(fault.tensor.as_deref(), Some("mean"));
    assert!(fault.reason.contains("too short"), "{}", fault.reason);
}

/// A dictionary in itself, and one below another without end, are walked once and left where they become too deep.
#[test]
fn dictionaries_without_end_end() {
    let mut p = b"\x80\x02}q\0".to_vec();
    for level in 0..2000 {
        p.extend(text("d"));
        p.extend(b"}");
        if level == 3 {
            p.extend(text("w"));
            p.extend(tensor(REBUILD, FLOATS, "0", 1, 1));
            p.extend(b"s");
        }
        p.extend(text("root"));
        p.extend(b"h\0s");
    }
    p.extend(vec![b's'; 2000]);
    p.extend(b".");
    let found = read(&pack(&p, &[0.0, 1.0])).unwrap();
    assert_eq!(found[0].name, "d.d.d.d.w");
}

#[test]
fn no_truncation_and_no_changed_byte_panics() {
    for wide in [false, true] {
        let plain = program(REBUILD, FLOATS, 3, 1);
        let whole = archive(&[("s/data.pkl", &plain), ("s/data/0", &[0; 16])], 0, wide);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} bytes were taken for whole");
        }
        for at in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                // Some changes give another valid file; what counts is that every one returns.
                let _ = read(&bytes);
            }
        }
    }
}
