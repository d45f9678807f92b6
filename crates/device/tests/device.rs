//! The emulated device holds what every driver promises, and nobody but its own threads can touch what lies in it.

use multigrain::driver::{Child, Direction, Driver, DriverName, Location, Site, Slack, Transfer};
use multigrain::prelude::*;
use multigrain::rooms::machine::{Edge, Memory, MemoryId};
use multigrain::rooms::program::RawView;
use multigrain_conformance::{Extent, all};
use multigrain_device::DeviceDriver;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;

const BYTES: u64 = 10_000;

fn memory(settings: &[(&str, &str)]) -> Memory {
    let device = DriverName::register(DeviceDriver.facts()).unwrap();
    let mut memory = Memory::child("device", MemoryId(0), 1, 1 << 20, Edge::new(device, 1e11, 0.0));
    memory.settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    memory
}

fn device(settings: &[(&str, &str)]) -> Box<dyn Child> {
    let memory = memory(settings);
    let edge = memory.edge.as_ref().unwrap();
    DeviceDriver.reserve(&Site { memory: &memory, edge, index: 0, bytes: BYTES }).unwrap().unwrap()
}

/// Moves `values` to or from a place in the device.
fn moved(device: &dyn Child, direction: Direction, offset_bytes: u64, values: &mut [f32]) -> Result<(), String> {
    let block = RawView::dense(values.as_mut_ptr().cast(), ElementType::F32, Shape::new(&[values.len() as u64]));
    let name = || "block [0:n] of x".to_owned();
    let location = Location::Memory(block);
    let transfer = Transfer { direction, location, offset_bytes, slack: Slack::default(), timed: true, name: &name };
    // SAFETY: the values are borrowed until the receipt was waited for.
    let receipt = unsafe { device.issue(&transfer) }.map_err(|e| e.to_string())?.expect("a device is asynchronous");
    let first = receipt.wait().map_err(|e| e.to_string());
    assert_eq!(first, receipt.wait().map_err(|e| e.to_string()), "a receipt says the same again");
    let [began, ended] = receipt.times().expect("it is over");
    assert!(began <= ended);
    first
}

#[test]
fn it_conforms() {
    all(&(Arc::new(DeviceDriver) as Arc<dyn Driver>), &Extent::USUAL.from_environment());
}

#[test]
fn its_own_threads_work_on_what_was_moved() {
    let device = device(&[("streams", "3")]);
    let span = device.span();
    let mut values: Vec<f32> = (0..100).map(|i| i as f32).collect();
    moved(&*device, Direction::Read, 64, &mut values).unwrap();
    let address = span.start.addr();
    let mut by = None;
    let mut leaf = || {
        let first = std::ptr::with_exposed_provenance_mut::<f32>(address + 64);
        // SAFETY: 100 numbers were moved there, and a leaf is executed.
        let values = unsafe { std::slice::from_raw_parts_mut(first, 100) };
        values.iter_mut().for_each(|value| *value += 1.0);
        by = std::thread::current().name().map(str::to_owned);
    };
    span.start.expose_provenance();
    // SAFETY: no transfer is under way.
    unsafe { device.run(&mut leaf) }.unwrap();
    assert_eq!(by.as_deref(), Some("device processor"));
    values.fill(0.0);
    moved(&*device, Direction::Write, 64, &mut values).unwrap();
    assert!(values.iter().enumerate().all(|(i, &value)| value == i as f32 + 1.0));
    // A leaf's panic is handed back, and the next leaf is executed.
    // SAFETY: as above.
    let panic = unsafe { device.run(&mut || panic!("a leaf")) }.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"a leaf"));
    // SAFETY: as above.
    unsafe { device.run(&mut || ()) }.unwrap();
}

#[test]
fn faults_stand_in_the_machine_file() {
    let broken = device(&[("fail", "2")]);
    let mut values = [1.0; 10];
    moved(&*broken, Direction::Read, 0, &mut values).unwrap();
    let error = moved(&*broken, Direction::Read, 0, &mut values).unwrap_err();
    assert!(error.contains("block [0:n] of x") && error.contains("machine file"), "{error}");
    moved(&*broken, Direction::Read, 0, &mut values).unwrap();
    let outside = moved(&*broken, Direction::Read, BYTES.next_multiple_of(4096) - 39, &mut values).unwrap_err();
    assert!(outside.contains("does not lie"), "{outside}");
    for (setting, needed) in [
        (("streams", "0"), "from 1 on"),
        (("fail", "none"), "from 1 on"),
        (("slower", "0"), "from 1 on"),
        (("guard", "no"), "true or false"),
    ] {
        let memory = memory(&[setting]);
        let edge = memory.edge.as_ref().unwrap();
        let refused = DeviceDriver.reserve(&Site { memory: &memory, edge, index: 0, bytes: 1 });
        let error = refused.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(setting.0) && error.contains(needed), "{error}");
    }
}

#[test]
fn the_machine_comes_with_the_driver() {
    multigrain_device::register().unwrap();
    multigrain_device::register().unwrap();
    let machine = Machine::shipped("device").unwrap();
    assert_eq!(Machine::parse(&machine.to_toml(), "again"), Ok(machine.clone()));
    assert_eq!(machine.memories()[1].setting("streams"), Some("2"));
    assert!(Machine::shipped_names().any(|name| name == "device"));
    let mut below = machine.memories().to_vec();
    below.push(Memory::child("core", MemoryId(1), 2, 1 << 10, Edge::new(DriverName::SHARED, 1e9, 0.0)));
    below[2].processor = below[1].processor;
    let error = Machine::new("wrong", "", below).unwrap_err().to_string();
    assert!(error.contains("its own processor alone"), "{error}");
    let unknown = machine.with("device", |memory| memory.settings.push(("speed".into(), "1".into())));
    let error = unknown.unwrap_err().to_string();
    assert!(error.contains("no setting \"speed\"") && error.contains("streams, fail"), "{error}");
}

/// Where a process that has set this in its environment reads.
const TOUCHED: &str = "MULTIGRAIN_TEST_TOUCHES";

#[test]
fn whoever_else_touches_it_is_ended() {
    if let Ok(place) = std::env::var(TOUCHED) {
        let device = device(if place == "open" { &[("guard", "false")] } else { &[] });
        let mut values = [1.0; 10];
        moved(&*device, Direction::Read, 0, &mut values).unwrap();
        // SAFETY: nothing is under way.
        unsafe { device.run(&mut || ()) }.unwrap();
        let span = device.span();
        let at = match &*place {
            "first" | "open" => span.start,
            "last" => span.start.wrapping_add(span.len_bytes as usize - 1),
            "before" => span.start.wrapping_sub(1),
            "behind" => span.start.wrapping_add(span.len_bytes as usize),
            _ => &raw mut values[0] as *mut u8,
        };
        // SAFETY: none: that it ends the process is what is tested.
        let read = unsafe { at.read_volatile() };
        std::process::exit(i32::from(read == u8::MAX));
    }
    let touch = |place: &str| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "whoever_else_touches_it_is_ended", "--test-threads=1"]).env(TOUCHED, place);
        test.output().unwrap().status
    };
    assert_eq!(touch("nothing of it").code(), Some(0));
    assert_eq!(touch("open").code(), Some(0), "it is not guarded");
    const SIGSEGV: i32 = 11;
    for place in ["first", "last", "before", "behind"] {
        assert_eq!(touch(place).signal(), Some(SIGSEGV), "{place}");
    }
}
