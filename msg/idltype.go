package msg

import (
	"strconv"
	"strings"
)

var idlTypes = map[string]Base{
	"boolean": Bool, "octet": Byte, "char": Char, "wchar": WChar, "float": Float, "double": Double,
	"short": Int16, "int8": Int8, "int16": Int16, "int32": Int32, "int64": Int64,
	"uint8": UInt8, "uint16": UInt16, "uint32": UInt32, "uint64": UInt64,
}

// typeSpec reads a type. Typedefs are resolved; names of other structs become full type names.
func (p *idlParser) typeSpec(modules []string, depth int) (Type, error) {
	t := p.peek()
	if t.kind != tokName && t.text != "::" {
		return Type{}, p.unexpected("a type")
	}
	if base, ok := idlTypes[t.text]; ok {
		p.next()
		return Type{Base: base}, nil
	}
	switch t.text {
	case "long":
		p.next()
		switch {
		case p.accept("long"):
			return Type{Base: Int64}, nil
		case p.accept("double"):
			return Type{Base: LongDouble}, nil
		}
		return Type{Base: Int32}, nil
	case "unsigned":
		p.next()
		switch {
		case p.accept("short"):
			return Type{Base: UInt16}, nil
		case !p.accept("long"):
			return Type{}, p.unexpected("short or long")
		case p.accept("long"):
			return Type{Base: UInt64}, nil
		}
		return Type{Base: UInt32}, nil
	case "string", "wstring":
		return p.stringType()
	case "sequence":
		return p.sequence(modules, depth)
	case "map", "fixed", "any", "union", "struct", "enum", "bitset", "bitmask":
		return Type{}, lineError(t.line, "%s is not a type that ROS 2 messages can have", t.text)
	}
	return p.scopedName(modules)
}

// stringType reads string, wstring and their bounded forms.
func (p *idlParser) stringType() (Type, error) {
	t := Type{Base: String}
	if p.next().text == "wstring" {
		t.Base = WString
	}
	if !p.accept("<") {
		return t, nil
	}
	t.Base += BoundedString - String
	var err error
	if t.StringCapacity, err = p.bound(); err != nil {
		return t, err
	}
	return t, p.expect(">")
}

// sequence reads sequence<T> and sequence<T, N>.
func (p *idlParser) sequence(modules []string, depth int) (Type, error) {
	line := p.next().line
	if depth >= maxModules {
		return Type{}, lineError(line, "sequences nested deeper than %d", maxModules)
	}
	if err := p.expect("<"); err != nil {
		return Type{}, err
	}
	t, err := p.typeSpec(modules, depth+1)
	if err != nil {
		return t, err
	}
	if t.Array != Single {
		return t, lineError(line, "sequence of arrays or sequences: ROS 2 messages cannot have it")
	}
	t.Array = Unbounded
	if p.accept(",") {
		t.Array = Bounded
		if t.Capacity, err = p.bound(); err != nil {
			return t, err
		}
	}
	return t, p.expect(">")
}

// scopedName reads a::b::C: a typedef, a struct of these modules, or one with its modules named.
func (p *idlParser) scopedName(modules []string) (Type, error) {
	line := p.peek().line
	p.accept("::")
	var parts []string
	for {
		name, err := p.name()
		if err != nil {
			return Type{}, err
		}
		if parts = append(parts, name); !p.accept("::") {
			break
		}
	}
	if t, ok := p.typedefs[parts[0]]; ok && len(parts) == 1 {
		return t, nil
	}
	if len(parts) < 3 && len(modules) >= len(parts) {
		// Enclosing modules complete a shorter name: T in module a::b is a::b::T, b::T is a::b::T.
		parts = append(modules[:len(modules)-len(parts)+1:len(modules)-len(parts)+1], parts...)
	}
	if len(parts) != 3 {
		return Type{}, lineError(line, "type %.100q: want package::msg::Type", strings.Join(parts, "::"))
	}
	return nested(strings.Join(parts, "/")), nil
}

// declarators reads the names that get type t, each with an array size perhaps.
func (p *idlParser) declarators(t Type, add func(name string, t Type)) error {
	for {
		name, err := p.name()
		if err != nil {
			return err
		}
		d := t
		if line := p.peek().line; p.accept("[") {
			if d.Array != Single {
				return lineError(line, "%s: array of arrays or sequences: ROS 2 messages cannot have it", name)
			}
			d.Array = Fixed
			if d.Capacity, err = p.bound(); err != nil {
				return err
			}
			if err := p.expect("]"); err != nil {
				return err
			}
			if p.peek().text == "[" {
				return lineError(line, "%s: array with two dimensions: ROS 2 messages cannot have it", name)
			}
		}
		add(name, d)
		if !p.accept(",") {
			return nil
		}
	}
}

// bound reads a positive number or the name of a constant.
func (p *idlParser) bound() (uint64, error) {
	t := p.next()
	n, ok := uint64(0), false
	switch t.kind {
	case tokNumber:
		var err error
		n, err = strconv.ParseUint(t.text, 0, 64)
		ok = err == nil
	case tokName:
		for p.accept("::") {
			if t = p.next(); t.kind != tokName {
				break
			}
		}
		n, ok = p.integers[t.text]
	}
	if !ok || n == 0 || n > maxCapacity {
		return 0, lineError(t.line, "found %v, want a number from 1 to %d or a constant of that value", t, uint64(maxCapacity))
	}
	return n, nil
}
