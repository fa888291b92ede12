//! A device with its queue, from Rust.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use emu2::spec::Spec;
use emu2_capi::{Board, Capture, Limit, Loaded, Rules, Status};
use std::sync::Arc;

const COPY: &str = "nop; wait i10\nmvp/n64i1e $p0@0 $p64@0\n";

fn board() -> Board {
    Board::of(Arc::new(Spec::load("mini").unwrap()), Rules::default()).unwrap()
}

fn load(board: &Board, text: &str) -> Loaded {
    board.load(text.as_bytes(), "k.vsm").unwrap()
}

fn received(board: &Board, tag: u32) -> Result<[u8; 512], Status> {
    let mut out = [0; 512];
    board.receive(&mut out, 512, tag).map_err(|e| e.status)?;
    Ok(out)
}

/// A kernel may be launched before its data is sent: it starts when the host has signalled the tag.
#[test]
fn a_kernel_waits_for_the_host() {
    let board = board();
    let copy = load(&board, COPY);
    for round in 1..4 {
        board.launch(&copy).unwrap();
        assert_eq!(board.wait_kernels().unwrap_err().status, Status::Timeout);
        assert_eq!((board.queued().0, board.waiting_for()), (1, Some(0x10)));
        assert_eq!(received(&board, 0x1e), Err(Status::Timeout));
        board.send(&[round; 512], 0, 0x10).unwrap();
        assert_eq!(received(&board, 0x1e), Ok([round; 512]));
        assert_eq!(received(&board, 0x1e), Err(Status::Timeout));
        board.wait_kernels().unwrap();
        assert_eq!(board.queued(), (0, [0, 0]));
    }
}

/// A wait uses a signal up, and so does a receive, each for itself.
#[test]
fn signals_are_used_up() {
    let board = board();
    let both = load(&board, "mvp/n64i1e $p0@0 $p64@0\nnop; wait i1e\n");
    board.send(&[5; 512], 0, 0).unwrap();
    board.launch(&both).unwrap();
    assert_eq!(received(&board, 0x1e), Ok([5; 512]));
    board.launch(&load(&board, "nop; wait i1e\n")).unwrap();
    assert_eq!(board.wait_kernels().unwrap_err().status, Status::Timeout);
    board.reset();
    board.wait_kernels().unwrap();
}

/// Memories survive a reset, and a stopped device works again after it.
#[test]
fn a_double_tag_stops_the_device() {
    let double = "mvp/n64i1e $p0@0 $p64@0\nmvp/n64i1e $p0@0 $p128@0\n";
    let board = board();
    board.send(&[9; 512], 0, 0).unwrap();
    board.launch(&load(&board, double)).unwrap();
    assert_eq!(received(&board, 0x1e), Err(Status::Dma));
    assert_eq!(board.wait_kernels().unwrap_err().status, Status::Device);
    assert_eq!(board.launch(&load(&board, COPY)).unwrap_err().status, Status::Kernel);
    assert_eq!(board.send(&[1; 512], 0, 0).unwrap_err().status, Status::Dma);
    assert_eq!(board.debug_read("pdm", [0; 5], 64, 1).unwrap(), [0x0909_0909_0909_0909]);
    board.reset();
    assert_eq!(received(&board, 0), Ok([9; 512]));
    let merging = Rules { refuse_double_tags: false, ..Rules::default() };
    let board = Board::of(board.spec().clone(), merging).unwrap();
    board.launch(&load(&board, double)).unwrap();
    assert_eq!(received(&board, 0x1e), Ok([0; 512]));
    assert_eq!(received(&board, 0x1e), Err(Status::Timeout));
}

#[test]
fn transfers_beside_the_caller() {
    let board = board();
    let copy = load(&board, COPY);
    let receive = board.start_receive(512, 512, 0x1e).unwrap();
    assert_eq!(board.end(receive, false).unwrap(), None);
    assert_eq!(board.wait_transfers().unwrap_err().status, Status::Timeout);
    board.launch(&copy).unwrap();
    let send = board.start_send(&[3; 512], 0, 0x10).unwrap();
    assert_eq!(board.end(receive, true).unwrap(), Some(Ok(vec![3; 512])));
    assert_eq!(board.end(send, true).unwrap(), Some(Ok(Vec::new())));
    board.wait_transfers().unwrap();
    // A send that was started before a launch is seen by the kernel.
    board.start_send(&[4; 512], 0, 0x10).unwrap();
    board.launch(&copy).unwrap();
    assert_eq!(received(&board, 0x1e), Ok([4; 512]));
    for (bytes, offset, tag) in [(0, 0, 0), (4, 0, 0), (8, 4, 0), (8, u64::MAX - 7, 0), (8, 0, 64), (1 << 40, 0, 0)] {
        assert_eq!(board.start_receive(bytes, offset, tag).unwrap_err().status, Status::Param);
    }
    let lost = board.start_receive(8, 0, 5).unwrap();
    board.forget_transfer(lost);
    board.wait_transfers().unwrap();
}

/// Thousands of launches without a wait: the queue never overflows, and every kernel runs.
#[test]
fn many_launches() {
    let board = board();
    let count = load(&board, "lpassa $lm0 $ln0\nnop/3\n");
    (0..5000).for_each(|_| board.launch(&count).unwrap());
    board.wait_kernels().unwrap();
    assert_eq!(board.instructions(), 4 * 5000);
    let now = board.snapshot(Capture::Now);
    assert_eq!((now.instructions, now.all_nop), (20_000, 15_000));
    board.arm(Capture::Snapshot(2), 20_002).unwrap();
    board.launch(&count).unwrap();
    let then = board.snapshot(Capture::Snapshot(2));
    assert_eq!((then.instructions, then.all_nop), (20_002, 15_001));
    assert!(board.arm(Capture::Now, 0).is_err());
}

#[test]
fn devices_run_beside_each_other() {
    let spec = Arc::new(Spec::load("mini").unwrap());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let spec = spec.clone();
            scope.spawn(move || {
                let board = Board::of(spec, Rules::default()).unwrap();
                let copy = load(&board, COPY);
                for round in 0..50u8 {
                    let data = [round.wrapping_mul(7).wrapping_add(number); 512];
                    board.send(&data, 0, 0x10).unwrap();
                    board.launch(&copy).unwrap();
                    assert_eq!(received(&board, 0x1e), Ok(data));
                }
            });
        }
    });
}

/// Calls of several threads on one device take turns.
#[test]
fn threads_share_a_device() {
    let board = board();
    let step = load(&board, "linc $lm0 $lm0\nnop/4\n");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| board.launch(&step).unwrap()));
        }
    });
    assert_eq!(board.debug_read("lm0", [0; 5], 0, 1).unwrap(), [400]);
}

#[test]
fn a_forgetful_device() {
    let rules = Rules { forget: true, ..Rules::default() };
    let board = Board::of(Arc::new(Spec::load("mini").unwrap()), rules).unwrap();
    let copy = load(&board, COPY);
    board.send(&[3; 512], 0, 0x10).unwrap();
    board.launch(&copy).unwrap();
    assert_eq!(received(&board, 0x1e), Ok([3; 512]));
    board.send(&[1; 8], 0, 0).unwrap();
    assert_eq!(received(&board, 0), Ok([0; 512]));
}

#[test]
fn limits_are_kept() {
    let board = board();
    let all = [Limit::DdmaKickVerify, Limit::DdmaComplete, Limit::IdmaKickVerify, Limit::IdmaComplete];
    assert_eq!(all.map(|limit| board.limit(limit, None)), [100, 2000, 100, 5000]);
    assert_eq!(all.map(|limit| board.limit(limit, Some(7))), [100, 2000, 100, 5000]);
    assert_eq!(all.map(|limit| board.limit(limit, Some(0))), [7; 4]);
    assert_eq!(all.map(|limit| board.limit(limit, None)), [7; 4]);
}

#[test]
fn kernels_of_files() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels_of_files");
    std::fs::create_dir_all(&folder).unwrap();
    let board = board();
    let program = emu2::asm::assemble_bytes(COPY.as_bytes(), "k.vsm", board.spec(), emu2::asm::Policy::Run).unwrap();
    std::fs::write(folder.join("packed.idma.dat"), emu2::word::pack(&program).unwrap()).unwrap();
    // The text beside a packed file that does not exist; lines of a host are left out.
    std::fs::write(folder.join("text.asm"), "c 0 0 i10 i00 0 0 1 05\ns nop; wait i10\ns mvp/n64i1e $p0@0 $p64@0\nf\n")
        .unwrap();
    std::fs::write(folder.join("vendor.idma.dat"), [0xa5; 256]).unwrap();
    std::fs::write(folder.join("empty.idma.dat"), []).unwrap();
    for name in ["packed.idma.dat", "text.idma.dat", "text.asm"] {
        let kernel = board.load_file(&folder.join(name)).unwrap();
        assert_eq!(kernel.tags(), (vec![0x10], vec![0x1e]), "{name}");
    }
    for (name, status) in [
        ("vendor.idma.dat", Status::Kernel),
        ("empty.idma.dat", Status::Kernel),
        ("none.idma.dat", Status::Io),
        (".", Status::Io),
    ] {
        assert_eq!(board.load_file(&folder.join(name)).unwrap_err().status, status, "{name}");
    }
}
