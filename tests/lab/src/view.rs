//! The live view in a terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bellwether_scenario::{Action, Algorithm, NodeView, Status, What};
use ratatui::backend::{Backend, TestBackend};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, List, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame, Terminal};

use crate::chronicle::Said;
use crate::display::{Display, Scene, Wish, is_everyday};
use crate::measured::Measured;
use crate::narrator::{Narrator, Sentence};

const LINES_KEPT: usize = 200;
const REFRESH: Duration = Duration::from_millis(100);
const KEYS: &str = " ↑↓ select   k kill   b boot   r reset   p pause/resume   l leave   u unplug/plug   s split   h heal   q quit ";

/// What the view keeps of a node beside its state vector.
#[derive(Debug, Clone, Default)]
struct Extra {
    booted_us: Option<u64>,
    programs: u64,
    erases: u64,
    late_us: u64,
    paused: bool,
    unplugged: bool,
    mute: Option<String>,
}

/// Everything that is shown; drawn on a terminal or into a text.
#[derive(Debug)]
pub struct Picture {
    title: String,
    measured: Measured,
    extras: Vec<Extra>,
    narrator: Narrator,
    /// What happens, in words.
    story: VecDeque<String>,
    /// What the boards say, where somebody wants to see that.
    log: Option<VecDeque<String>>,
    selected: usize,
}

fn keep(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == LINES_KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}

fn seconds(us: u64) -> String {
    format!("{:8.3}", us as f64 / 1e6)
}

/// An eye that looks for the end of an election finds it.
fn mood(line: &str) -> Style {
    match line.contains("  settled ") {
        true => Style::default().fg(Color::Green),
        false => Style::default(),
    }
}

impl Picture {
    pub fn new(nodes: u8, algorithm: Algorithm, tm_us: u64, tp_us: u64) -> Self {
        let (tm, tp) = (tm_us / 1000, tp_us / 1000);
        Self {
            title: format!(" bellwether · {nodes} boards · {algorithm} · Tm {tm} ms · Tp {tp} ms "),
            measured: Measured::new(nodes, tm_us, tp_us),
            extras: vec![Extra::default(); nodes.into()],
            narrator: Narrator::default(),
            story: VecDeque::new(),
            log: None,
            selected: 0,
        }
    }

    /// Shows the lines of the boards below the story.
    pub fn raw(mut self, raw: bool) -> Self {
        self.log = raw.then(VecDeque::new);
        self
    }

    fn tell(&mut self, sentences: Vec<Sentence>) {
        for (at_us, sentence) in sentences {
            keep(&mut self.story, format!("{}  {sentence}", seconds(at_us)));
        }
    }

    fn note(&mut self, said: &Said) {
        self.measured.hear(said);
        let Some(extra) = self.extras.get_mut(usize::from(said.node) - 1) else { return };
        let number = |key| said.line.number(key).unwrap_or(0);
        match said.line.word.as_str() {
            "flash" => (extra.programs, extra.erases) = (number("programs"), number("erases")),
            "margin" => extra.late_us = number("late_us"),
            "mute" => extra.mute = said.line.get("reason").map(ToOwned::to_owned),
            _ => {}
        }
        if said.events.iter().any(|event| event.what == What::Boot) {
            let (booted_us, unplugged) = (Some(said.at_us), extra.unplugged);
            *extra = Extra { booted_us, unplugged, ..Extra::default() };
        }
        self.narrator.hear(said);
        if let Some(log) = self.log.as_mut().filter(|_| !is_everyday(&said.line.word)) {
            let (at, word) = (seconds(said.at_us), &said.line.word);
            keep(log, format!("{at}  node {} {word} {}", said.node, said.line.text()));
        }
    }

    fn acts(&mut self, at_us: u64, action: &Action) {
        let extras = &mut self.extras;
        let mut each = |nodes: &[u8], change: fn(&mut Extra)| {
            nodes.iter().for_each(|id| change(&mut extras[usize::from(*id) - 1]));
        };
        match action {
            Action::Pause { nodes } => each(nodes, |extra| extra.paused = true),
            Action::Resume { nodes } | Action::Reset { nodes } => {
                each(nodes, |extra| extra.paused = false);
            }
            Action::Unplug { nodes } => each(nodes, |extra| extra.unplugged = true),
            Action::Plug { nodes } => each(nodes, |extra| extra.unplugged = false),
            _ => {}
        }
        self.narrator.act(at_us, action);
    }

    fn look(&mut self, scene: &dyn Scene) {
        let sentences = self.narrator.look(scene.now_us(), scene.seen());
        self.tell(sentences);
    }

    fn row(&self, index: usize, view: &NodeView, scene: &dyn Scene) -> Row<'static> {
        let extra = &self.extras[index];
        let power = scene.has_power(view.id);
        let (status, color) = match (&extra.mute, power, extra.paused) {
            (_, false, _) => ("off".to_owned(), Color::DarkGray),
            (_, _, true) => ("paused".to_owned(), Color::Magenta),
            (None, true, false) if extra.unplugged => {
                (format!("{} (cable)", view.status), Color::Magenta)
            }
            (Some(why), ..) => (format!("mute: {why}"), Color::Red),
            _ => match view.status {
                Status::Normal => ("Normal".to_owned(), Color::Green),
                other => (other.to_string(), Color::Yellow),
            },
        };
        let shown = |value: Option<String>| value.filter(|_| power).unwrap_or_else(|| "-".into());
        let coordinator = shown(view.coordinator.map(|id| id.to_string()));
        // The number of a group is its maker's boot epoch and a count within that boot.
        let group = shown(
            view.group.map(|(owner, n)| format!("{owner}.{}.{}", n >> 32, n & u64::from(u32::MAX))),
        );
        let up: Vec<String> = view.up.iter().map(ToString::to_string).collect();
        let members = shown((!up.is_empty()).then(|| up.join(" ")));
        let since = extra.booted_us.map(|at| scene.now_us().saturating_sub(at) / 1_000_000);
        let resets: Vec<String> =
            view.resets.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        let me = if view.coordinator == Some(view.id) && power { "★" } else { " " };
        let style = Style::default().fg(color);
        let row = Row::new([
            Cell::from(format!("{me} {}", view.id)),
            Cell::from(status).style(style),
            Cell::from(coordinator),
            Cell::from(group),
            Cell::from(members),
            Cell::from(shown(since.map(|s| format!("{s} s")))),
            Cell::from(resets.join(", ")),
            Cell::from(format!("{} / {}", extra.programs, extra.erases)),
            Cell::from(format!("{:.1} ms", extra.late_us as f64 / 1000.0)),
        ]);
        let chosen = if index == self.selected { Modifier::REVERSED } else { Modifier::empty() };
        row.style(Style::default().add_modifier(chosen))
    }

    fn draw(&self, frame: &mut Frame<'_>, scene: &dyn Scene) {
        let nodes = self.extras.len() as u16;
        let log = Constraint::Fill(self.log.is_some().into());
        let parts =
            [Constraint::Length(nodes + 3), Constraint::Fill(1), log, Constraint::Length(1)];
        let [table, story, log, keys] = Layout::vertical(parts).areas(frame.area());
        let head =
            ["  id", "status", "coord", "group", "members", "up", "resets", "flash w/e", "late"];
        let widths = [5, 15, 6, 10, 20, 7, 18, 10, 9].map(Constraint::Min);
        let seen = scene.seen();
        let rows = seen.nodes.iter().enumerate().map(|(i, view)| self.row(i, view, scene));
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let header = Row::new(head).style(bold);
        let title = format!("{}· {} ", self.title, self.narrator.standing());
        let held = scene.held_back().map(|share| format!("clock held back {:.0} %", share * 100.0));
        let below: Vec<String> = self.measured.brief().into_iter().chain(held).collect();
        let below =
            if below.is_empty() { below.concat() } else { format!(" {} ", below.join(" · ")) };
        let block = Block::bordered().title(title).title_bottom(below);
        frame.render_widget(Table::new(rows, widths).header(header).block(block), table);
        let panel = |title: &'static str, lines: &VecDeque<String>, area: Rect| {
            let room = usize::from(area.height.saturating_sub(2));
            let last = lines.iter().skip(lines.len().saturating_sub(room));
            let list = List::new(last.map(|line| Line::from(line.clone()).style(mood(line))));
            (list.block(Block::bordered().title(title)), area)
        };
        let story = panel(" what happens ", &self.story, story);
        let raw = self.log.as_ref().map(|lines| panel(" what the boards say ", lines, log));
        for (list, area) in [story].into_iter().chain(raw) {
            frame.render_widget(list, area);
        }
        frame.render_widget(Paragraph::new(KEYS), keys);
    }

    /// The view as text, for a file.
    pub fn text(&self, scene: &dyn Scene, width: u16, height: u16) -> String {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height)) else {
            return String::new();
        };
        if terminal.draw(|frame| self.draw(frame, scene)).is_err() {
            return String::new();
        }
        let (backend, mut text) = (terminal.backend(), String::new());
        let Ok(size) = backend.size() else { return text };
        for y in 0..size.height {
            let cells = (0..size.width).filter_map(|x| backend.buffer().cell((x, y)));
            let line: String = cells.map(|cell| cell.symbol()).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn key(&mut self, code: KeyCode, scene: &dyn Scene) -> Option<Wish> {
        let id = self.selected as u8 + 1;
        let nodes = vec![id];
        let all = 1..=scene.nodes();
        let on = scene.has_power(id);
        Some(Wish::Act(match code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
            KeyCode::Up => {
                self.selected = self.selected.saturating_sub(1);
                return None;
            }
            KeyCode::Down => {
                self.selected = (self.selected + 1).min(self.extras.len() - 1);
                return None;
            }
            KeyCode::Char('k') if on => Action::Kill { nodes },
            KeyCode::Char('b') if !on => Action::Boot { nodes },
            KeyCode::Char('p') if on && self.extras[self.selected].paused => {
                Action::Resume { nodes }
            }
            KeyCode::Char('r') if on => Action::Reset { nodes },
            KeyCode::Char('p') if on => Action::Pause { nodes },
            KeyCode::Char('l') if on => Action::Leave { nodes },
            KeyCode::Char('u') if on && self.extras[self.selected].paused => {
                // A board that stands still cannot be told.
                self.tell(vec![(scene.now_us(), format!("node {id} is paused: go on (p) first"))]);
                return None;
            }
            KeyCode::Char('u') if on && self.extras[self.selected].unplugged => {
                Action::Plug { nodes }
            }
            KeyCode::Char('u') if on => Action::Unplug { nodes },
            KeyCode::Char('s') => {
                let (low, high) = all.partition(|n| *n <= scene.nodes() / 2);
                Action::Partition { sets: vec![low, high] }
            }
            KeyCode::Char('h') => Action::Heal,
            _ => return None,
        }))
    }
}

/// The view on the terminal. Dropping it gives the terminal back.
pub struct View {
    terminal: Option<DefaultTerminal>,
    pub picture: Picture,
    drawn: Instant,
    screen: Option<std::path::PathBuf>,
}

impl View {
    /// `terminal`: draw on it, and listen to the keyboard. `screen`: keep the view in a file.
    pub fn start(picture: Picture, terminal: bool, screen: Option<std::path::PathBuf>) -> Self {
        let terminal = terminal.then(ratatui::init);
        Self { terminal, picture, drawn: Instant::now(), screen }
    }

    fn wishes(&mut self, scene: &dyn Scene) -> Vec<Wish> {
        let mut wishes = Vec::new();
        while event::poll(Duration::ZERO).unwrap_or(false) {
            if let Ok(Event::Key(key)) = event::read()
                && key.kind == KeyEventKind::Press
            {
                let control_c = key.code == KeyCode::Char('c')
                    && key.modifiers.contains(event::KeyModifiers::CONTROL);
                let code = if control_c { KeyCode::Esc } else { key.code };
                wishes.extend(self.picture.key(code, scene));
            }
        }
        wishes
    }
}

impl Display for View {
    fn said(&mut self, said: &Said) {
        self.picture.note(said);
    }

    fn acts(&mut self, at_us: u64, action: &Action) {
        self.picture.acts(at_us, action);
    }

    fn look(&mut self, scene: &dyn Scene) -> Vec<Wish> {
        self.picture.look(scene);
        if self.drawn.elapsed() < REFRESH {
            return Vec::new();
        }
        self.drawn = Instant::now();
        if let Some(path) = &self.screen {
            // A file that cannot be written costs the picture, not the run.
            let _ = std::fs::write(path, self.picture.text(scene, 118, 34));
        }
        let Some(terminal) = &mut self.terminal else { return Vec::new() };
        if terminal.draw(|frame| self.picture.draw(frame, scene)).is_err() {
            return vec![Wish::Quit];
        }
        self.wishes(scene)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.terminal.take().is_some() {
            ratatui::restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_scenario::{Observation, Scenario, Watch};

    use super::*;

    struct Two(Observation);

    impl Scene for Two {
        fn now_us(&self) -> u64 {
            1_000_000
        }

        fn held_back(&self) -> Option<f64> {
            Some(0.124)
        }

        fn seen(&self) -> &Observation {
            &self.0
        }

        fn has_power(&self, _id: u8) -> bool {
            true
        }
    }

    #[test]
    fn the_cable_of_a_paused_board_stays_where_it_is() {
        let scenario = Scenario::undisturbed(Algorithm::Bully, 2, 0);
        let scene = Two(Watch::new(&scenario).seen().clone());
        let mut picture = Picture::new(2, Algorithm::Bully, 40_000, 40_000);
        let cable = KeyCode::Char('u');
        let unplug = Action::Unplug { nodes: vec![1] };
        assert_eq!(picture.key(cable, &scene), Some(Wish::Act(unplug)));
        picture.acts(0, &Action::Pause { nodes: vec![1] });
        assert_eq!(picture.key(cable, &scene), None);
        assert!(picture.text(&scene, 118, 34).contains("node 1 is paused"));
        picture.acts(0, &Action::Resume { nodes: vec![1] });
        assert!(picture.key(cable, &scene).is_some());
    }

    #[test]
    fn the_story_is_shown_and_the_lines_only_if_asked_for() {
        let scenario = Scenario::undisturbed(Algorithm::Bully, 2, 0);
        let scene = Two(Watch::new(&scenario).seen().clone());
        let line = crate::line::Line::parse("7 note what=suspected node=2 number=0").unwrap();
        let said = Said { node: 1, at_us: 500_000, line, events: Vec::new() };
        let shown = |raw| {
            let mut picture = Picture::new(2, Algorithm::Bully, 40_000, 40_000).raw(raw);
            picture.note(&said);
            picture.look(&scene);
            picture.text(&scene, 118, 34)
        };
        let (story, both) = (shown(false), shown(true));
        assert!(story.contains("   0.500  node 1 suspects 2: no sign of life"), "{story}");
        assert!(
            story.contains("not settled") && story.contains(" clock held back 12 % "),
            "{story}"
        );
        assert!(!story.contains("what=suspected"), "{story}");
        assert!(both.contains("node 1 suspects 2") && both.contains("what=suspected"), "{both}");
    }
}
