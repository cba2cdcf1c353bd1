package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// protocol is how a kit's table is read for gRPC. The key of a method is its
// full name, "/pkg.Service/Method", that of a service is "pkg.Service".
var protocol = wire.Protocol{
	Name:      "grpc",
	Parse:     parseName,
	Broader:   broader,
	OneMethod: isMethod,
	Declared:  declaredSafety,
	Find:      find,
	Routes:    func([]string) any { return newRoutes() },
	Waits: wire.Waits{
		Attempt:      "to the end of a unary RPC, for a stream until it is open",
		FirstMessage: "the first message of a stream, from the start of its attempt",
		Rest:         "each wait for a message of an open stream",
	},
}

var errName = errors.New(`is no gRPC name; a method is "/pkg.Service/Method", a service is "pkg.Service"`)

// parseName brings a name of the table into canonical form.
func parseName(name string) (key string, err error) {
	trimmed := strings.TrimPrefix(name, "/")
	service, method, slash := strings.Cut(trimmed, "/")
	switch {
	case !isService(service):
		return "", errName
	case slash && method != "":
		if !isWord(method) {
			return "", errName
		}
		return "/" + service + "/" + method, checkMethod(service, method)
	case !slash && trimmed != name:
		return "", errName // "/pkg": a method that lacks its service, or a service its end
	}
	return service, checkService(service)
}

// isService reports whether s is words joined by dots. A generated service is
// named by such words; a word that gRPC takes beside the letters, digits and
// underscores of protobuf is one with a hyphen.
func isService(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !isWord(word) {
			return false
		}
	}
	return true
}

func isWord(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

// checkMethod returns an error if the service is known and has no such method.
// A service that is not registered proves nothing.
func checkMethod(service, method string) error {
	s, ok := lookUp(service).(protoreflect.ServiceDescriptor)
	if !ok || s.Methods().ByName(protoreflect.Name(method)) != nil {
		return nil
	}
	names := make([]string, s.Methods().Len())
	for i := range names {
		names[i] = string(s.Methods().Get(i).Name())
	}
	slices.Sort(names)
	return fmt.Errorf("service %s has no method %s; it has %s", service, method, strings.Join(names, ", "))
}

// checkService returns an error if the name is known to be something else.
func checkService(name string) error {
	switch d := lookUp(name).(type) {
	case nil, protoreflect.ServiceDescriptor:
		return nil
	case protoreflect.MethodDescriptor:
		return fmt.Errorf("is a method, whose name is written /%s/%s", d.Parent().FullName(), d.Name())
	default:
		return errors.New("is the name of a protobuf type that is no service")
	}
}

// lookUp returns what is registered under a name, nil if nothing is.
func lookUp(name string) protoreflect.Descriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	return d
}

func isMethod(key string) bool { return strings.HasPrefix(key, "/") }

// serviceOf returns the key of a method's service. The method is a key or the
// name in an RPC, which may be anything.
func serviceOf(method string) string {
	if end := strings.LastIndexByte(method, '/'); end > 0 {
		return method[1:end]
	}
	return ""
}

func broader(key string, keys []string) []string {
	if service := serviceOf(key); isMethod(key) && slices.Contains(keys, service) {
		return []string{service}
	}
	return nil
}

// find reads a method as a user names it for Kit.Explain.
func find(method string, keys []string) (name, key string, declared call.Safety, ok bool) {
	name, err := parseName(method)
	if err != nil || !isMethod(name) {
		return "", "", call.SafetyUnknown, false
	}
	for _, k := range []string{name, serviceOf(name)} {
		if slices.Contains(keys, k) {
			key = k
			break
		}
	}
	return name, key, declaredSafety(name), true
}
