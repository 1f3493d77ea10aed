package msg

import (
	"fmt"
	"strconv"
	"strings"
)

const maxModules = 16 // nested modules, and nested sequence types, of a .idl file

// idlParser reads the part of OMG IDL that rosidl understands: modules, structs, constants, typedefs, sequences,
// arrays, bounded strings, annotations and includes. Unions, maps, inheritance and arrays of arrays are errors, as
// they are in rosidl; enums are skipped.
type idlParser struct {
	tokens    []token
	typedefs  map[string]Type
	integers  map[string]uint64     // constants that bounds may name
	constants map[string][]Constant // by name of the module
	structs   []Message
}

func (f *File) parseIDL(n fullName, text string) error {
	tokens, includes, err := lexIDL(text)
	if err != nil {
		return err
	}
	f.Includes = includes
	p := &idlParser{tokens: tokens, typedefs: map[string]Type{}, integers: map[string]uint64{}, constants: map[string][]Constant{}}
	if err := p.definitions(nil); err != nil {
		return err
	}
	if p.peek().kind != tokEnd {
		return p.unexpected("a definition")
	}
	if f.Messages, err = p.interfaceNamed(n); err != nil {
		return err
	}
	for i := range f.Messages {
		if err := f.Messages[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// interfaceNamed makes the message, service or action n of the structs that were found.
func (p *idlParser) interfaceNamed(n fullName) ([]Message, error) {
	found := func(suffix string) *Message {
		for i := range p.structs {
			if m := &p.structs[i]; m.Name == n.String()+suffix {
				m.Constants = p.constants[n.name+suffix+"_Constants"]
				return m
			}
		}
		return nil
	}
	if m := found(""); m != nil {
		return []Message{*m}, nil
	}
	if request, response := found("_Request"), found("_Response"); request != nil && response != nil {
		return service(n.String(), *request, *response), nil
	}
	if goal, result, feedback := found("_Goal"), found("_Result"), found("_Feedback"); goal != nil && result != nil && feedback != nil {
		return action(n.String(), *goal, *result, *feedback), nil
	}
	return nil, fmt.Errorf("no struct %s::%s::%s, nor those of a service or action of that name", n.pkg, n.folder, n.name)
}

func (p *idlParser) peek() token { return p.tokens[0] }

func (p *idlParser) next() token {
	t := p.tokens[0]
	if t.kind != tokEnd {
		p.tokens = p.tokens[1:]
	}
	return t
}

// accept takes the next token if it is text.
func (p *idlParser) accept(text string) bool {
	t := p.peek()
	if t.kind == tokText || t.kind == tokEnd || t.text != text {
		return false
	}
	p.next()
	return true
}

func (p *idlParser) expect(text string) error {
	if !p.accept(text) {
		return p.unexpected(strconv.Quote(text))
	}
	return nil
}

func (p *idlParser) unexpected(want string) error {
	return lineError(p.peek().line, "found %v, want %s", p.peek(), want)
}

func (p *idlParser) name() (string, error) {
	if p.peek().kind != tokName {
		return "", p.unexpected("a name")
	}
	return p.next().text, nil
}

// definitions reads what stands in a module, up to its closing brace.
func (p *idlParser) definitions(modules []string) error {
	for {
		if _, err := p.annotations(); err != nil {
			return err
		}
		t := p.peek()
		if t.kind != tokName {
			return nil
		}
		p.next()
		var err error
		switch t.text {
		case "module":
			err = p.module(modules)
		case "const":
			err = p.constant(modules)
		case "typedef":
			err = p.typedef(modules)
		case "struct":
			err = p.structure(modules)
		case "enum":
			if _, err = p.name(); err == nil {
				_, err = p.balanced("{", "}")
			}
		default:
			return lineError(t.line, "found %v, want module, struct, typedef, const or enum", t)
		}
		if err == nil {
			err = p.expect(";")
		}
		if err != nil {
			return err
		}
	}
}

func (p *idlParser) module(modules []string) error {
	line := p.peek().line
	name, err := p.name()
	if err != nil {
		return err
	}
	if len(modules) >= maxModules {
		return lineError(line, "modules nested deeper than %d", maxModules)
	}
	if err := p.expect("{"); err != nil {
		return err
	}
	if err := p.definitions(append(modules[:len(modules):len(modules)], name)); err != nil {
		return err
	}
	return p.expect("}")
}

// annotations skips annotations and returns the value of @default as written.
func (p *idlParser) annotations() (def string, err error) {
	for p.accept("@") {
		name, err := p.name()
		if err != nil {
			return "", err
		}
		for p.accept("::") {
			if name, err = p.name(); err != nil {
				return "", err
			}
		}
		if p.peek().text != "(" || p.peek().kind != tokPunct {
			continue
		}
		args, err := p.balanced("(", ")")
		if err != nil {
			return "", err
		}
		if name == "default" && len(args) > 2 && args[0].text == "value" && args[1].text == "=" {
			def = joined(args[2:])
		}
	}
	return def, nil
}

// balanced reads from an opening to its closing token and returns what is between them.
func (p *idlParser) balanced(open, closing string) ([]token, error) {
	start := p.peek()
	if err := p.expect(open); err != nil {
		return nil, err
	}
	all := p.tokens
	for depth := 1; ; {
		switch {
		case p.peek().kind == tokEnd:
			return nil, lineError(start.line, "%s without %s", open, closing)
		case p.accept(open):
			depth++
		case p.accept(closing):
			if depth--; depth == 0 {
				return all[:len(all)-len(p.tokens)-1], nil
			}
		default:
			p.next()
		}
	}
}

// joined is the source text of tokens, blanks only between literals and names.
func joined(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && t.kind != tokPunct && tokens[i-1].kind != tokPunct {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// constant reads "type NAME = value".
func (p *idlParser) constant(modules []string) error {
	t, err := p.typeSpec(modules, 0)
	if err != nil {
		return err
	}
	name, err := p.name()
	if err != nil {
		return err
	}
	if err := p.expect("="); err != nil {
		return err
	}
	value := p.tokens
	for p.peek().kind != tokEnd && (p.peek().kind != tokPunct || p.peek().text != ";") {
		p.next()
	}
	value = value[:len(value)-len(p.tokens)]
	if len(value) == 0 {
		return p.unexpected("the value of " + name)
	}
	if len(value) == 1 && value[0].kind == tokNumber {
		if n, err := strconv.ParseUint(value[0].text, 0, 64); err == nil {
			p.integers[name] = n
		}
	}
	if len(modules) > 0 {
		module := modules[len(modules)-1]
		p.constants[module] = append(p.constants[module], Constant{Name: name, Type: t, Value: joined(value)})
	}
	return nil
}

func (p *idlParser) typedef(modules []string) error {
	t, err := p.typeSpec(modules, 0)
	if err != nil {
		return err
	}
	return p.declarators(t, func(name string, t Type) { p.typedefs[name] = t })
}

// structure reads a struct or its forward declaration.
func (p *idlParser) structure(modules []string) error {
	name, err := p.name()
	if err != nil {
		return err
	}
	if p.peek().text == ";" {
		return nil
	}
	if err := p.expect("{"); err != nil {
		return err
	}
	m := Message{Name: strings.Join(append(modules[:len(modules):len(modules)], name), "/")}
	for !p.accept("}") {
		def, err := p.annotations()
		if err != nil {
			return err
		}
		t, err := p.typeSpec(modules, 0)
		if err != nil {
			return err
		}
		if err := p.declarators(t, func(name string, t Type) {
			m.Fields = append(m.Fields, Field{Name: name, Type: t, Default: def})
		}); err != nil {
			return err
		}
		if err := p.expect(";"); err != nil {
			return err
		}
	}
	p.structs = append(p.structs, m)
	return nil
}
