//! One entry of the timer log: a message, when it is due, and the entry before it of the same slot.

use bindery_protocol::message::PhysicalOffset;

/// Bytes of a unit; also what its first field says.
pub(super) const SIZE: usize = 52;
/// Stands where a unit's magic would, at the end of a file that has no room for another one.
pub(super) const BLANK: i32 = (0xBBCC_DDEE_u32 ^ 0x7018_EC7A).cast_signed();

/// What a unit stands for: bits 0 to 3, of which bit 0 is always set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(i32);

impl Kind {
    const NORMAL: i32 = 1;
    const ROLL: i32 = 2;
    const DELETE: i32 = 4;

    /// An ordinary message, a message that cancels another, or either of them on its way to a later slot.
    #[must_use]
    pub fn new(rolls: bool, cancels: bool) -> Self {
        let roll = if rolls { Self::ROLL } else { 0 };
        let delete = if cancels { Self::DELETE } else { 0 };
        Self(Self::NORMAL | roll | delete)
    }

    /// The message is due later than the wheel reaches: at this unit's time it is put into the queue again.
    #[must_use]
    pub fn rolls(self) -> bool {
        self.0 & Self::ROLL != 0
    }

    /// The message cancels another one.
    #[must_use]
    pub fn cancels(self) -> bool {
        self.0 & Self::DELETE != 0
    }
}

/// One unit: 52 bytes, big endian: size (i32), position of the unit before it in its slot or -1 (i64), kind (i32), time of
/// writing (i64), milliseconds from then to its slot (i32), physical offset (i64) and size (i32) of the message, hash code
/// of its real topic (i32), 0 (i64). Mirrors `TimerLog` of Apache `RocketMQ` 5.3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Position of the slot's unit before it; negative for none.
    pub previous: i64,
    /// What it stands for.
    pub kind: Kind,
    /// When it was written, milliseconds since 1970, rounded down to the precision.
    pub written: i64,
    /// Milliseconds from `written` to its slot.
    pub delay: i32,
    /// Where the message lies.
    pub physical: PhysicalOffset,
    /// The message's size in bytes.
    pub size: i32,
    /// Java's hash code of the topic it is for.
    pub topic_hash: i32,
}

impl Unit {
    /// The slot's time, milliseconds since 1970.
    #[must_use]
    pub fn due(&self) -> i64 {
        self.written.saturating_add(i64::from(self.delay))
    }

    pub(super) fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..4].copy_from_slice(&52_i32.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.previous.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.kind.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.written.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.delay.to_be_bytes());
        bytes[28..36].copy_from_slice(&self.physical.0.to_be_bytes());
        bytes[36..40].copy_from_slice(&self.size.to_be_bytes());
        bytes[40..44].copy_from_slice(&self.topic_hash.to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SIZE]) -> Place {
        let kind = int(bytes, 12);
        if kind == BLANK {
            return Place::Blank;
        }
        if int(bytes, 0) != 52 || kind | 0xF != 0xF {
            return Place::Nothing;
        }
        Place::Unit(Self {
            previous: long(bytes, 4),
            kind: Kind(kind),
            written: long(bytes, 16),
            delay: int(bytes, 24),
            physical: PhysicalOffset(long(bytes, 28)),
            size: int(bytes, 36),
            topic_hash: int(bytes, 40),
        })
    }
}

/// What lies at a place of the timer log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Unit(Unit),
    /// The rest of the file is not used.
    Blank,
    /// No unit: never written, or damaged.
    Nothing,
}

fn int(bytes: &[u8; SIZE], at: usize) -> i32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    i32::from_be_bytes(field)
}

fn long(bytes: &[u8; SIZE], at: usize) -> i64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    i64::from_be_bytes(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_the_layout_of_apaches_timer_log() {
        let unit = Unit {
            previous: -1,
            kind: Kind::new(true, true),
            written: 1_700_000_000_000,
            delay: 7000,
            physical: PhysicalOffset(0x0102),
            size: 300,
            topic_hash: -5,
        };
        let bytes = unit.encode();
        let hex = bytes.map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(
            hex,
            "00000034ffffffffffffffff000000070000018bcfe5680000001b580000000000000102\
             0000012cfffffffb0000000000000000"
                .replace(' ', "")
        );
        assert_eq!(Unit::decode(&bytes), Place::Unit(unit));
        assert_eq!(unit.due(), 1_700_000_007_000);
    }

    #[test]
    fn what_is_no_unit_is_told_apart() {
        let mut bytes = [0; SIZE];
        assert_eq!(Unit::decode(&bytes), Place::Nothing);
        bytes[..4].copy_from_slice(&52_i32.to_be_bytes());
        bytes[12..16].copy_from_slice(&16_i32.to_be_bytes());
        assert_eq!(Unit::decode(&bytes), Place::Nothing);
        bytes[12..16].copy_from_slice(&BLANK.to_be_bytes());
        assert_eq!(Unit::decode(&bytes), Place::Blank);
    }
}
