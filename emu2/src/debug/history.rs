//! Images of the run. They stand closer the younger they are, and closest just before the last stop.

use crate::machine::{Blocks, Image, Machine, Written};
use std::time::{Duration, Instant};

/// An image is not taken sooner than this after the last one.
const PERIOD: Duration = Duration::from_millis(50);

/// At most this part of the time goes to images.
const SHARE: u32 = 20;

/// How long the statements between the last image and a stop should take.
const NEAR: Duration = Duration::from_millis(15);

#[derive(Debug)]
struct Moment {
    position: usize,
    image: Image,
    /// Bytes that the image before does not share.
    own: usize,
}

/// How many images a run keeps.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    /// Bytes that the images may take, but for the first one.
    pub bytes: usize,
    /// Statements from image to image. None spaces them by time.
    pub every: Option<usize>,
}

/// The images of a run.
#[derive(Debug)]
pub(super) struct History {
    blocks: Blocks,
    /// By position. The first one is the start of the run and stays.
    moments: Vec<Moment>,
    /// The image that the machine was last equal to.
    last: Image,
    /// What may have been written since.
    pub(super) written: Written,
    room: HistoryLimits,
    cost: Duration,
    since: Duration,
    /// Time of a statement.
    pace: Duration,
}

impl History {
    /// A history that begins with `machine` as it is.
    pub(super) fn new(machine: &Machine, room: HistoryLimits) -> History {
        let blocks = Blocks::new(machine.spec());
        let zeros = Image::zeros(&blocks, machine);
        let mut written = blocks.unwritten();
        written.add_all();
        let image = machine.image(&blocks, &zeros, &written);
        written.clear();
        let first = Moment { position: 0, own: image.unshared(&zeros), image: image.clone() };
        let (cost, since, pace) = (Duration::ZERO, Duration::ZERO, Duration::from_micros(50));
        History { blocks, moments: vec![first], last: image, written, room, cost, since, pace }
    }

    /// How the images are cut into blocks.
    pub(super) fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Number of images, and the bytes that they take.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.moments.len(), self.moments.iter().map(|moment| moment.own).sum())
    }

    /// The position up to which statements may run without an image, from `from` on the way to `target`. The flag says that the
    /// run stops soon behind it.
    pub(super) fn reach(&self, from: usize, target: usize) -> (usize, bool) {
        let near = self.near();
        match self.room.every {
            Some(every) => (target.min(from + every.max(1)), false),
            None if target - from > near => (target - near, true),
            None => (target, false),
        }
    }

    /// Number of statements that take about as long as going back may take.
    fn near(&self) -> usize {
        (NEAR.as_nanos() / self.pace.as_nanos().max(1)).clamp(16, 1 << 16) as usize
    }

    /// Notes that `count` statements took `time`.
    pub(super) fn ran(&mut self, count: usize, time: Duration) {
        self.since += time;
        if count >= 64 {
            self.pace = (3 * self.pace + time / count as u32) / 4;
        }
    }

    /// Whether it is time for an image at `position`. `stop_is_near`: the run stops soon behind it.
    pub(super) fn due(&self, position: usize, stop_is_near: bool) -> bool {
        let gap = position.saturating_sub(self.before(position + 1));
        match self.room.every {
            Some(every) => gap >= every,
            None => (stop_is_near && self.since >= NEAR) || self.since >= PERIOD.max(self.cost * SHARE),
        }
    }

    /// The place of the youngest image before `position`.
    pub(super) fn before(&self, position: usize) -> usize {
        self.moments[..self.behind(position)].last().map_or(0, |moment| moment.position)
    }

    /// Number of the first image at or behind `position`.
    fn behind(&self, position: usize) -> usize {
        self.moments.partition_point(|moment| moment.position < position)
    }

    /// The state of `machine` as an image.
    pub(super) fn image(&mut self, machine: &Machine) -> Image {
        let image = machine.image(&self.blocks, &self.last, &self.written);
        self.last = image.clone();
        self.written.clear();
        image
    }

    /// Keeps the state of `machine` at `position`.
    pub(super) fn record(&mut self, machine: &Machine, position: usize) {
        let started = Instant::now();
        let at = self.behind(position);
        if self.moments.get(at).is_none_or(|moment| moment.position != position) {
            let image = self.image(machine);
            self.moments.insert(at, Moment { position, image, own: 0 });
            self.weigh(at);
            self.weigh(at + 1);
            self.thin(position);
        }
        self.cost = started.elapsed();
        self.since = Duration::ZERO;
    }

    /// Counts the bytes of an image.
    fn weigh(&mut self, at: usize) {
        if let Some([before, moment]) = at.checked_sub(1).and_then(|first| self.moments.get_mut(first..=at)) {
            moment.own = moment.image.unshared(&before.image);
        }
    }

    /// Drops images until they fit. Those that are close together for their distance from `position` go first.
    fn thin(&mut self, position: usize) {
        let mut bytes: usize = self.moments.iter().skip(1).map(|moment| moment.own).sum();
        while bytes > self.room.bytes && self.moments.len() > 2 {
            let gap = |at: &usize| {
                let wide = self.moments.get(at + 1).map_or(position, |next| next.position);
                let gap = wide.saturating_sub(self.moments[at - 1].position) as f64;
                gap / (1 + position.abs_diff(self.moments[*at].position)) as f64
            };
            let last = self.moments.len() - 1;
            let Some(at) = (1..last).min_by(|one, two| gap(one).total_cmp(&gap(two))) else { return };
            self.moments.remove(at);
            self.weigh(at);
            bytes = self.moments.iter().skip(1).map(|moment| moment.own).sum();
        }
    }

    /// Makes `machine` what it was at the youngest image at or before `position`, and returns the place of that image.
    pub(super) fn restore(&mut self, machine: &mut Machine, position: usize) -> usize {
        let at = self.behind(position + 1).max(1) - 1;
        let moment = &self.moments[at];
        machine.restore(&self.blocks, &moment.image, &self.last, &self.written);
        self.last = moment.image.clone();
        self.written.clear();
        self.since = Duration::ZERO;
        moment.position
    }

    /// Forgets the images from `position` on, because the state there has changed.
    pub(super) fn forget(&mut self, machine: &Machine, position: usize) {
        let at = self.behind(position);
        self.moments.truncate(at);
        if self.moments.is_empty() {
            let image = self.image(machine);
            let own = self.moments.first().map_or(0, |moment| moment.own);
            self.moments.push(Moment { position: 0, image, own });
        }
    }
}
