//! Errors of the published algorithms, put back on purpose.
//!
//! A checker that has never seen a violation proves little. In a build with the feature `errata` a
//! node can be told to make one of the mistakes of PROTOCOLS section 4, or of section 3.2 as it stands
//! (the ring); tests then show that the simulator reports it. Without the feature the switch does not exist and all of this is `false`.

/// The mistakes that can be put back: by their numbers in PROTOCOLS section 4, and those of the ring by
/// the transitions that they spoil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erratum {
    /// A dead non-member makes the coordinator call elections for ever.
    E2,
    /// A failed announcement leaves Reorganization with oneself as coordinator; nobody notices.
    E3,
    /// NewCoordinator and Ready are acknowledged even when their guard failed.
    E5,
    /// Replies are not matched with the boot and call that they answer.
    E6,
    /// The Halt round ends as soon as all have answered.
    E7,
    /// Answers are counted, not collected in sets.
    E8,
    /// Anything from the node c counts as heard from the coordinator.
    E11,
    /// An Invitation is accepted whatever group the node is in.
    E13,
    /// An Invitation to one's own old group comes back through a forwarder and is accepted.
    E14,
    /// A Ready that overtakes the AcceptAns is refused.
    E15,
    /// A failed distribution computes a second definition under the same group number.
    E19,
    /// All coordinators wait equally long before they merge.
    E21,
    /// Whoever is in the list closes the Elect lap, not only the initiator, and whoever is not joins, also
    /// for the second time; a dead initiator is skipped.
    R5,
    /// A node that wakes takes no note of the runs that pass over it.
    R1,
}

/// The switch: which mistake this node makes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Errata {
    #[cfg(feature = "errata")]
    pub put_back: Option<Erratum>,
}

impl Errata {
    /// Whether this node makes the mistake.
    #[cfg(feature = "errata")]
    #[must_use]
    pub fn has(self, erratum: Erratum) -> bool {
        self.put_back == Some(erratum)
    }

    /// Most errors show where datagrams are doubled, which the sealed link does not let through: a node
    /// that makes one speaks version 1. The errors of the ring show without.
    #[cfg(feature = "errata")]
    #[must_use]
    pub fn needs_the_clear(self) -> bool {
        self.put_back.is_some_and(|erratum| !matches!(erratum, Erratum::R1 | Erratum::R5))
    }

    /// Without a mistake to show, every link is sealed.
    #[cfg(not(feature = "errata"))]
    #[must_use]
    pub const fn needs_the_clear(self) -> bool {
        false
    }

    /// Whether this node makes the mistake: never.
    #[cfg(not(feature = "errata"))]
    #[must_use]
    pub const fn has(self, _: Erratum) -> bool {
        false
    }
}
