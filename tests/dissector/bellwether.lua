-- A Wireshark dissector for Bellwether.
--
--   wireshark -X lua_script:tests/dissector/bellwether.lua CAPTURE.pcap
--
-- It shows datagrams of version 1 (in the clear) and those that `cargo flock open` has opened
-- (version 0x82) field by field, and of sealed ones (version 2) what is in the clear. The UDP port
-- is a preference of the protocol. A new kind of message is one line in the table `kinds`.

local bellwether = Proto("bellwether", "Bellwether")

local VERSION_CLEAR, VERSION_SEALED, VERSION_OPENED = 1, 2, 0x82
local TAG_BYTES = 16
local FIRST_REPLY = 65
local SET_BYTES_MAX = 32
local DEFINITION_BYTES_MAX = 512

local versions = {
    [VERSION_CLEAR] = "in the clear", [VERSION_SEALED] = "sealed", [VERSION_OPENED] = "opened"
}
local statuses = { [0] = "Down", [1] = "Election", [2] = "Reorganization", [3] = "Normal" }
local kind_names = {} -- filled from the table of kinds

local field = {
    version = ProtoField.uint8("bellwether.version", "Version", base.HEX, versions),
    kind = ProtoField.uint8("bellwether.kind", "Kind", base.DEC, kind_names),
    network = ProtoField.uint16("bellwether.network", "Network"),
    source = ProtoField.uint8("bellwether.source", "Source"),
    destination = ProtoField.uint8("bellwether.destination", "Destination (0: all)"),
    boot = ProtoField.uint32("bellwether.boot", "Boot epoch of the source"),
    call = ProtoField.uint32("bellwether.call", "Call"),
    sequence = ProtoField.uint32("bellwether.sequence", "Sequence"),
    key_id = ProtoField.uint8("bellwether.key_id", "Key"),
    sealed = ProtoField.bytes("bellwether.sealed", "Sealed text"),
    sealed_bytes = ProtoField.uint32("bellwether.sealed_bytes", "Bytes of the sealed text"),
    tag = ProtoField.bytes("bellwether.tag", "Tag"),
    requester_boot = ProtoField.uint32("bellwether.requester_boot", "Boot that is answered"),
    receiver_boot = ProtoField.uint32("bellwether.receiver_boot", "Boot of the receiver"),
    awaited = ProtoField.string("bellwether.awaited", "Awaited"),
    group = ProtoField.string("bellwether.group", "Group (owner.epoch.count)"),
    status = ProtoField.uint8("bellwether.status", "Status", base.DEC, statuses),
    up = ProtoField.string("bellwether.up", "Up"),
    definition = ProtoField.bytes("bellwether.definition", "Definition"),
    definition_bytes = ProtoField.uint16("bellwether.definition_bytes", "Bytes of the definition"),
    yes = ProtoField.bool("bellwether.yes", "Yes"),
    normal = ProtoField.bool("bellwether.normal", "Normal"),
    binding = ProtoField.bool("bellwether.binding", "Binding"),
    accepted = ProtoField.bool("bellwether.accepted", "Accepted"),
    ok = ProtoField.bool("bellwether.ok", "Ok"),
    roll_call = ProtoField.bool("bellwether.roll_call", "Roll call"),
    invitations = ProtoField.uint8("bellwether.invitations", "Groups that are invited"),
    leave = ProtoField.string("bellwether.leave", "Leave (owner.epoch.count)"),
    invited = ProtoField.string("bellwether.invited", "Invited"),
    hello_flags = ProtoField.uint8("bellwether.hello_flags", "Flags (1: asks, 2: waking)", base.HEX),
    uptime_ms = ProtoField.uint32("bellwether.uptime_ms", "Uptime (ms)"),
    instance = ProtoField.uint32("bellwether.instance", "Instance", base.HEX),
    silent = ProtoField.string("bellwether.silent", "Fell silent"),
    echoes = ProtoField.uint8("bellwether.echoes", "Boots that are known"),
    echo = ProtoField.string("bellwether.echo", "Known (id.epoch)"),
    run = ProtoField.string("bellwether.run", "Run (owner.epoch.count)"),
    round = ProtoField.uint32("bellwether.round", "Round"),
    list = ProtoField.string("bellwether.list", "Joined"),
    suspects = ProtoField.string("bellwether.suspects", "Suspects"),
    incumbent = ProtoField.uint8("bellwether.incumbent", "Incumbent (0: nobody)"),
    members = ProtoField.uint8("bellwether.members", "Members of the incumbent"),
    about = ProtoField.string("bellwether.about", "Missed"),
    heard = ProtoField.string("bellwether.heard", "Heard of"),
    extra = ProtoField.bytes("bellwether.extra", "Bytes that are not known"),
}
for _, known in pairs(field) do
    table.insert(bellwether.fields, known)
end

local malformed = ProtoExpert.new(
    "bellwether.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
bellwether.experts = { malformed }

bellwether.prefs.port = Pref.uint("UDP port", 4711, "The port of the flock")

-- A place in a datagram. After the first fault nothing more is read.
local Reader = {}
Reader.__index = Reader

function Reader.new(buffer, tree)
    return setmetatable({ buffer = buffer, tree = tree, at = 0, fault = false }, Reader)
end

function Reader:left()
    return self.buffer:len() - self.at
end

function Reader:bad(why)
    if not self.fault then
        self.fault = true
        self.tree:add_proto_expert_info(malformed, why)
    end
end

-- The next bytes as a range; nil (and a fault) if there are not so many.
function Reader:take(count, what)
    if self.fault then
        return nil
    end
    if count == 0 or self:left() < count then
        self:bad("the datagram ends before its " .. what)
        return nil
    end
    local range = self.buffer(self.at, count)
    self.at = self.at + count
    return range
end

-- A number of so many bytes; its value, or nil.
function Reader:number(known, count, what)
    local range = self:take(count, what)
    if range == nil then
        return nil
    end
    self.tree:add_le(known, range)
    return range:le_uint()
end

function Reader:flag(known, what)
    local value = self:number(known, 1, what)
    if value ~= nil and value > 1 then
        self:bad("the flag " .. what .. " is " .. value)
    end
end

function Reader:group(known, what, may_be_none)
    local range = self:take(9, what)
    if range == nil then
        return
    end
    local owner = range(0, 1):uint()
    local count, epoch = range(1, 4):le_uint(), range(5, 4):le_uint()
    local text = owner .. "." .. epoch .. "." .. count
    if owner == 0 then
        text = "none"
        if not may_be_none or count ~= 0 or epoch ~= 0 then
            self.tree:add(known, range, text)
            self:bad("the " .. what .. " has no owner")
            return
        end
    end
    self.tree:add(known, range, text)
end

function Reader:set(known, what)
    local start = self.at
    local length = self:take(1, what)
    if length == nil then
        return
    end
    local count = length:uint()
    local ids = {}
    if count > SET_BYTES_MAX then
        self:bad("the set " .. what .. " has " .. count .. " bytes")
        return
    end
    if count > 0 then
        local bytes = self:take(count, what)
        if bytes == nil then
            return
        end
        for index = 0, count - 1 do
            local byte = bytes(index, 1):uint()
            for bit = 0, 7 do
                if math.floor(byte / 2 ^ bit) % 2 == 1 then
                    table.insert(ids, index * 8 + bit + 1)
                end
            end
        end
        if bytes(count - 1, 1):uint() == 0 then
            self:bad("the set " .. what .. " is longer than it must be")
        end
    end
    self.tree:add(known, self.buffer(start, self.at - start), table.concat(ids, " "))
end

function Reader:definition()
    local count = self:number(field.definition_bytes, 2, "definition")
    if count == nil or count == 0 then
        return
    end
    if count > DEFINITION_BYTES_MAX then
        self:bad("the definition has " .. count .. " bytes")
        return
    end
    local bytes = self:take(count, "definition")
    if bytes ~= nil then
        self.tree:add(field.definition, bytes)
    end
end

-- What the messages are made of.
local function group(r) r:group(field.group, "group") end
local function maybe_group(r) r:group(field.group, "group", true) end
local function up(r) r:set(field.up, "up") end
local function about(r) r:set(field.about, "about") end
local function heard(r) r:set(field.heard, "heard") end
local function flag(name)
    return function(r) r:flag(field[name], name) end
end
local function status(r)
    local value = r:number(field.status, 1, "status")
    if value ~= nil and statuses[value] == nil then
        r:bad("the status is " .. value)
    end
end
local function definition(r) r:definition() end
local function invitees(r)
    local count = r:number(field.invitations, 1, "invitees")
    for _ = 1, count or 0 do
        r:group(field.leave, "group to leave")
        r:set(field.invited, "invited")
        if r.fault then
            return
        end
    end
end
local function hello(r)
    r:number(field.hello_flags, 1, "flags")
    r:number(field.uptime_ms, 4, "uptime")
    r:number(field.instance, 4, "instance")
    local count = r:number(field.echoes, 1, "boots")
    for _ = 1, count or 0 do
        local pair = r:take(5, "boots")
        if pair == nil then
            return
        end
        r.tree:add(field.echo, pair, pair(0, 1):uint() .. "." .. pair(1, 4):le_uint())
    end
end
local function clash(r)
    local instance = r:number(field.instance, 4, "instance")
    if instance ~= nil then
        r.tree:add(field.silent, instance == 0 and "the sender" or "another board with its id")
    end
end
local function token(r)
    r:group(field.run, "run")
    r:number(field.round, 4, "round")
    r:set(field.list, "list")
    r:set(field.suspects, "suspects")
    local id = r:number(field.incumbent, 1, "incumbent")
    local members = r:number(field.members, 1, "members of the incumbent")
    if id == 0 and members ~= nil and members > 0 then
        r:bad("nobody has " .. members .. " members")
    end
end

-- Number, name and body of every kind. `more`: bytes behind the body are shown, not blamed.
local kinds = {
    [1] = { "AreYouThere", maybe_group, status },
    [2] = { "AreYouNormal", group },
    [3] = { "Halt", group, flag("binding") },
    [4] = { "NewCoordinator", group },
    [5] = { "Ready", group, up, definition },
    [6] = { "AreYouCoordinator", group, flag("roll_call") },
    [7] = { "Invitation", group, invitees },
    [8] = { "Accept", group },
    [9] = { "Beat", group, flag("normal") },
    [10] = { "Hello", hello, more = true },
    [11] = { "Clash", clash, more = true },
    [12] = { "Elect", token },
    [13] = { "Coord", token },
    [14] = { "RingReady", token, definition },
    [20] = { "HaveYouHeard", group, about },
    [21] = { "Leaving", maybe_group },
    [65] = { "AytAns", flag("yes") },
    [66] = { "AynAns", flag("normal") },
    [67] = { "HaltAck" },
    [68] = { "NcAck", flag("accepted") },
    [69] = { "ReadyAck", flag("accepted") },
    [70] = { "AycAns", flag("yes"), maybe_group, up },
    [71] = { "AcceptAns", flag("ok") },
    [72] = { "ReadyAns", flag("ok") },
    [73] = { "HopAck" },
    [80] = { "Heard", heard },
}
for number, kind in pairs(kinds) do
    kind_names[number] = kind[1]
end

local function dissect_body(r, kind)
    if kind == nil then
        return -- named as unknown already
    end
    for index = 2, #kind do
        if not r.fault then
            kind[index](r)
        end
    end
    if not r.fault and r:left() > 0 then
        local extra = r.buffer(r.at, r:left())
        r.tree:add(field.extra, extra)
        if not kind.more then
            r:bad("bytes behind the end of the message")
        end
    end
end

function bellwether.dissector(buffer, packet, root)
    packet.cols.protocol = "Bellwether"
    local tree = root:add(bellwether, buffer())
    local r = Reader.new(buffer, tree)
    local version = r:number(field.version, 1, "version")
    if version ~= nil and versions[version] == nil then
        r:bad("version " .. version .. " is not known")
    end
    local kind_number = r:number(field.kind, 1, "kind")
    r:number(field.network, 2, "network")
    local source = r:number(field.source, 1, "source")
    local destination = r:number(field.destination, 1, "destination")
    r:number(field.boot, 4, "boot epoch")
    if r.fault then
        return
    end
    local kind = kinds[kind_number]
    local name = kind and kind[1] or ("kind " .. kind_number)
    local to = destination == 0 and "all" or destination
    packet.cols.info = name .. " " .. source .. " to " .. to
    if source == 0 then
        r:bad("the source is 0")
    elseif kind == nil then
        r:bad("kind " .. kind_number .. " is not known")
    elseif kind_number >= FIRST_REPLY and destination == 0 then
        r:bad("a reply to all")
    end

    if version == VERSION_CLEAR then
        r:number(field.call, 4, "call")
        if kind_number >= FIRST_REPLY then
            r:number(field.requester_boot, 4, "answered boot")
        elseif destination == 0 then
            r:set(field.awaited, "awaited")
        end
        dissect_body(r, kind)
        return
    end

    r:number(field.sequence, 4, "sequence")
    r:number(field.key_id, 1, "key")
    if r.fault then
        return
    end
    if version == VERSION_SEALED then
        local bytes = r:left() - TAG_BYTES
        if bytes < 0 then
            r:bad("the datagram ends before its tag")
            return
        end
        tree:add(field.sealed_bytes, bytes):set_generated()
        if bytes > 0 then
            tree:add(field.sealed, r:take(bytes, "sealed text"))
        end
        tree:add(field.tag, r:take(TAG_BYTES, "tag"))
        return
    end
    r:number(field.call, 4, "call")
    if destination == 0 then
        r:set(field.awaited, "awaited")
    elseif kind_number >= FIRST_REPLY then
        r:number(field.requester_boot, 4, "answered boot")
    else
        r:number(field.receiver_boot, 4, "boot of the receiver")
    end
    dissect_body(r, kind)
end

-- The port can be changed while Wireshark runs.
local ports = DissectorTable.get("udp.port")
local registered = bellwether.prefs.port
ports:add(registered, bellwether)

function bellwether.prefs_changed()
    if registered ~= bellwether.prefs.port then
        ports:remove(registered, bellwether)
        registered = bellwether.prefs.port
        ports:add(registered, bellwether)
    end
end
