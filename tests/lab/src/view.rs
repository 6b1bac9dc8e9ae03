//! The live view in a terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bellwether_scenario::{Action, Algorithm, NodeView, Status, What};
use ratatui::backend::{Backend, TestBackend};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, List, Paragraph, Row, Table};
use ratatui::{DefaultTerminal, Frame, Terminal};

use crate::chronicle::Said;
use crate::display::{Display, Wish, is_everyday, settled};
use crate::flock::Flock;

const LINES_KEPT: usize = 200;
const REFRESH: Duration = Duration::from_millis(100);
const KEYS: &str = " ↑↓ select   k kill   b boot   r reset   p pause/resume   u unplug/plug   s split   h heal   q quit ";

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
    extras: Vec<Extra>,
    log: VecDeque<String>,
    timeline: VecDeque<String>,
    settled: Option<u8>,
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

impl Picture {
    pub fn new(nodes: u8, algorithm: Algorithm, tm_us: u64, tp_us: u64) -> Self {
        let (tm, tp) = (tm_us / 1000, tp_us / 1000);
        Self {
            title: format!(" bellwether · {nodes} boards · {algorithm} · Tm {tm} ms · Tp {tp} ms "),
            extras: vec![Extra::default(); nodes.into()],
            log: VecDeque::new(),
            timeline: VecDeque::new(),
            settled: None,
            selected: 0,
        }
    }

    fn note(&mut self, said: &Said) {
        let Some(extra) = self.extras.get_mut(usize::from(said.node) - 1) else { return };
        let number = |key| said.line.number(key).unwrap_or(0);
        match said.line.word.as_str() {
            "flash" => (extra.programs, extra.erases) = (number("programs"), number("erases")),
            "margin" => extra.late_us = number("late_us"),
            "mute" => extra.mute = said.line.get("reason").map(ToOwned::to_owned),
            _ => {}
        }
        for event in &said.events {
            match &event.what {
                What::Boot => {
                    let (booted_us, unplugged) = (Some(said.at_us), extra.unplugged);
                    *extra = Extra { booted_us, unplugged, ..Extra::default() };
                }
                What::Reset { cause } => {
                    let line = format!("{} node {} reset: {cause}", seconds(said.at_us), said.node);
                    keep(&mut self.timeline, line);
                }
                _ => {}
            }
        }
        if said.line.word == "note" {
            let what = said.line.get("what").unwrap_or_default();
            let whom = number("node");
            let line = match what {
                "election" => format!("node {} calls an election", said.node),
                "suspected" => format!("node {} suspects node {whom}", said.node),
                other => format!("node {}: {other} node {whom}", said.node),
            };
            keep(&mut self.timeline, format!("{} {line}", seconds(said.at_us)));
        }
        if !is_everyday(&said.line.word) {
            let (at, word) = (seconds(said.at_us), &said.line.word);
            keep(&mut self.log, format!("{at} node {} {word} {}", said.node, said.line.text()));
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
        keep(&mut self.timeline, format!("{} lab: {action:?}", seconds(at_us)));
    }

    fn look(&mut self, flock: &Flock) {
        let now = settled(flock.watch.seen());
        if now != self.settled {
            self.settled = now;
            if let Some(id) = now {
                let line = format!("{} settled under node {id}", seconds(flock.now_us()));
                keep(&mut self.timeline, line);
            }
        }
    }

    fn row(&self, index: usize, view: &NodeView, flock: &Flock) -> Row<'static> {
        let extra = &self.extras[index];
        let power = flock.has_power(view.id);
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
        let since = extra.booted_us.map(|at| flock.now_us().saturating_sub(at) / 1_000_000);
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

    fn draw(&self, frame: &mut Frame<'_>, flock: &Flock) {
        let nodes = self.extras.len() as u16;
        let parts = [
            Constraint::Length(nodes + 3),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ];
        let [table, timeline, log, keys] = Layout::vertical(parts).areas(frame.area());
        let head =
            ["  id", "status", "coord", "group", "members", "up", "resets", "flash w/e", "late"];
        let widths = [5, 15, 6, 10, 20, 7, 18, 10, 9].map(Constraint::Min);
        let seen = flock.watch.seen();
        let rows = seen.nodes.iter().enumerate().map(|(i, view)| self.row(i, view, flock));
        let bold = Style::default().add_modifier(Modifier::BOLD);
        let header = Row::new(head).style(bold);
        let title = match self.settled {
            Some(id) => format!("{}· settled under node {id} ", self.title),
            None => format!("{}· not settled ", self.title),
        };
        let block = Block::bordered().title(title);
        frame.render_widget(Table::new(rows, widths).header(header).block(block), table);
        for (title, lines, area) in
            [(" elections ", &self.timeline, timeline), (" log ", &self.log, log)]
        {
            let room = usize::from(area.height.saturating_sub(2));
            let last = lines.iter().skip(lines.len().saturating_sub(room));
            let list = List::new(last.map(|line| Line::from(line.as_str())));
            frame.render_widget(list.block(Block::bordered().title(title)), area);
        }
        frame.render_widget(Paragraph::new(KEYS), keys);
    }

    /// The view as text, for a file.
    pub fn text(&self, flock: &Flock, width: u16, height: u16) -> String {
        let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height)) else {
            return String::new();
        };
        if terminal.draw(|frame| self.draw(frame, flock)).is_err() {
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

    fn key(&mut self, code: KeyCode, flock: &Flock) -> Option<Wish> {
        let id = self.selected as u8 + 1;
        let nodes = vec![id];
        let all = 1..=flock.nodes();
        let on = flock.has_power(id);
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
            KeyCode::Char('u') if on && self.extras[self.selected].unplugged => {
                Action::Plug { nodes }
            }
            KeyCode::Char('u') if on => Action::Unplug { nodes },
            KeyCode::Char('s') => {
                let (low, high) = all.partition(|n| *n <= flock.nodes() / 2);
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

    fn wishes(&mut self, flock: &Flock) -> Vec<Wish> {
        let mut wishes = Vec::new();
        while event::poll(Duration::ZERO).unwrap_or(false) {
            if let Ok(Event::Key(key)) = event::read()
                && key.kind == KeyEventKind::Press
            {
                let control_c = key.code == KeyCode::Char('c')
                    && key.modifiers.contains(event::KeyModifiers::CONTROL);
                let code = if control_c { KeyCode::Esc } else { key.code };
                wishes.extend(self.picture.key(code, flock));
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

    fn look(&mut self, flock: &Flock) -> Vec<Wish> {
        self.picture.look(flock);
        if self.drawn.elapsed() < REFRESH {
            return Vec::new();
        }
        self.drawn = Instant::now();
        if let Some(path) = &self.screen {
            // A file that cannot be written costs the picture, not the run.
            let _ = std::fs::write(path, self.picture.text(flock, 118, 34));
        }
        let Some(terminal) = &mut self.terminal else { return Vec::new() };
        if terminal.draw(|frame| self.picture.draw(frame, flock)).is_err() {
            return vec![Wish::Quit];
        }
        self.wishes(flock)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.terminal.take().is_some() {
            ratatui::restore();
        }
    }
}
